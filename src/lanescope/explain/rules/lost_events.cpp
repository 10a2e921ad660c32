// Launches without their kernels (in the middle of the recording, or from some moment on), or
// kernels without their launches.
#include <optional>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

struct LostEvents {
  bool work_is_lost = false;
  bool launches_are_lost = false;
  bool stops_early = false;
  std::uint64_t without_work = 0;
  std::uint64_t without_launch = 0;
  std::uint64_t works = 0;
  std::uint64_t dropped = 0;
  SliceId first_call = kNone<SliceId>;
  SliceId first_work = kNone<SliceId>;
};

std::optional<LostEvents> measure_lost_events(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::vector<SliceId>& launches = facts.kernel_launches.calls;
  const std::size_t end = facts.kernel_launches.recorded;
  const bool stops_early = facts.kernel_launches.gpu_stops_early();
  std::uint64_t without_work = 0;
  SliceId first_call = kNone<SliceId>;
  for (std::size_t i = 0; i < end; ++i) {
    if (!facts.links.launched_by(launches[i]).empty()) continue;
    if (without_work++ == 0) first_call = launches[i];
  }
  std::uint64_t without_launch = 0, works = 0;
  SliceId first_work = kNone<SliceId>;
  for (const DeviceFacts& device : facts.devices) {
    if (!device.timeline.has_launches()) continue;
    for (const auto& work : device.timeline.work) {
      ++works;
      if (work.before_recording || facts.links.launch_of[raw(work.slice)] != kNone<SliceId>)
        continue;
      if (without_launch++ == 0) first_work = work.slice;
    }
  }
  const std::uint64_t dropped = trace.import_stats()[ImportIssue::kDroppedRecords].count;
  const bool work_is_lost = without_work >= 5 && without_work * 100 >= end;
  const bool launches_are_lost = without_launch >= 5 && without_launch * 100 >= works;
  if (!work_is_lost && !launches_are_lost && !stops_early && dropped == 0) return std::nullopt;
  return LostEvents{work_is_lost, launches_are_lost, stops_early, without_work, without_launch,
                    works,        dropped,           first_call,  first_work};
}

Sentence lost_events_verdict(const Facts& facts, const LostEvents& lost) {
  const Trace& trace = *facts.trace;
  const std::vector<SliceId>& launches = facts.kernel_launches.calls;
  const std::size_t end = facts.kernel_launches.recorded;
  if (lost.work_is_lost)
    return say(
        "{} of {} kernel launches have no kernel in the trace, and they are not at its end: the "
        "recorder lost GPU work, so busy time is too small and idle time is too large.",
        {count(lost.without_work), count(end)});
  if (lost.stops_early)
    return say(
        "The recording of the GPU stops before that of the CPU: the last {} of {} kernel launches, "
        "from {} on, have no kernel in the trace.",
        {count(launches.size() - end), count(launches.size()),
         ns(trace.start_ns(launches[end]) - trace.window_start_ns())});
  if (lost.launches_are_lost)
    return say(
        "{} of {} pieces of GPU work have no launch call in the trace, though earlier work of the "
        "same streams has one: some calls were not recorded.",
        {count(lost.without_launch), count(lost.works)});
  return say("The recorder dropped {} records because it had no room for them.",
             {count(lost.dropped)});
}

Finding tell_lost_events(const Facts& facts, const LostEvents& measured) {
  const auto& [work_is_lost, launches_are_lost, stops_early, without_work, without_launch, works,
               dropped, first_call, first_work] = measured;
  const std::vector<SliceId>& launches = facts.kernel_launches.calls;
  const std::size_t end = facts.kernel_launches.recorded;
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.verdict = lost_events_verdict(facts, measured);
  if (stops_early)
    finding.arithmetic.push_back(say(
        facts,
        work_is_lost ? "the last {} [launch|launches] [has|have] no kernel either: the recording "
                       "of the GPU stops there"
        : facts.selection.lacks_gpu_work
            ? "what the GPU did after that is unknown; no step after the first is complete"
            : "what the GPU did after that is unknown; means do not include steps that lack more "
              "than a twentieth of their kernels",
        work_is_lost ? std::vector<Value>{count(launches.size() - end)} : std::vector<Value>{}));
  if (work_is_lost && launches_are_lost)
    finding.arithmetic.push_back(say("{} of {} pieces of GPU work have no launch call, either",
                                     {count(without_launch), count(works)}));
  if (dropped > 0 && (work_is_lost || launches_are_lost || stops_early))
    finding.arithmetic.push_back(say("the recorder counts {} dropped records", {count(dropped)}));
  if (!work_is_lost && !stops_early && launches_are_lost)
    finding.arithmetic.push_back(
        say("this work counts as busy time; gaps before it get no cause, and tables assign it to "
            "no operator"));
  if (work_is_lost)
    finding.evidence.push_back({first_call, say("the first launch without kernel")});
  if (stops_early)
    finding.evidence.push_back({launches[end], say("from this launch on no kernel was recorded")});
  if (launches_are_lost)
    finding.evidence.push_back({first_work, say("the first piece of work without launch")});
  finding.brief =
      work_is_lost
          ? say("GPU work was lost: {} of {} launches have no kernel; idle time is too large",
                {count(without_work), count(end)})
      : stops_early ? say("The GPU was not recorded to the end: the last {} of {} launches have no "
                          "kernel",
                          {count(launches.size() - end), count(launches.size())})
      : launches_are_lost
          ? say("{} of {} pieces of GPU work have no launch call",
                {count(without_launch), count(works)})
          : say(facts, "The recorder dropped {} [record|records]", {count(dropped)});
  finding.try_next = {stops_early && !work_is_lost
                          ? "call torch.cuda.synchronize() before the profiler stops; a killed "
                            "program or a cut file also ends like this"
                          : "record fewer steps at a time, or give the profiler larger buffers",
                      "record other threads and processes too: the missing calls may be theirs"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = work_is_lost        ? end
                         : stops_early       ? launches.size()
                         : launches_are_lost ? works
                                             : dropped;
  finding.sample_noun = work_is_lost || stops_early ? "launch call"
                        : launches_are_lost         ? "piece"
                                                    : "record";
  return finding;
}

}  // namespace

extern constinit const Rule lost_events_rule = {
    .id = "lost-events",
    .question = "did the recorder lose launches or GPU work?",
    .meant_by = "missing trust reliable complete broken",
    .order = 270,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_lost_events, tell_lost_events>,
    .warns_of_loss = true,
};

}  // namespace lanescope::explain::rules
