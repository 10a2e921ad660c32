// Launches without their kernels, or kernels without their launch, in the middle of the recording.
#include <algorithm>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

// In order of time. What is launched while a stream is captured becomes a graph and does not run.
std::vector<SliceId> kernel_launches(const Trace& trace) {
  std::vector<SliceId> launches;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::kThread) continue;
    bool captures = false;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      if (!is_api_call(trace.kind(id))) continue;
      const std::string_view call = trace.name(id);
      if (call.find("StreamBeginCapture") != std::string_view::npos)
        captures = true;
      else if (call.find("StreamEndCapture") != std::string_view::npos)
        captures = false;
      else if (!captures && starts_kernels(call))
        launches.push_back(id);
    }
  }
  std::stable_sort(launches.begin(), launches.end(),
                   [&](SliceId a, SliceId b) { return trace.start_ns(a) < trace.start_ns(b); });
  return launches;
}

}  // namespace

Outcome lost_events(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  const Trace& trace = *facts.trace;
  const std::vector<SliceId> launches = kernel_launches(trace);
  // Behind the last launch with work lies the end of the recording, which may come before the work.
  std::size_t end = launches.size();
  while (end > 0 && facts.links.launched_by(launches[end - 1]).empty()) --end;
  std::uint64_t without_work = 0;
  SliceId first_call = kNone<SliceId>;
  for (std::size_t i = 0; i < end; ++i) {
    if (!facts.links.launched_by(launches[i]).empty()) continue;
    if (without_work++ == 0) first_call = launches[i];
  }
  std::uint64_t without_launch = 0, works = 0;
  SliceId first_work = kNone<SliceId>;
  if (has_launches(facts)) {
    for (const DeviceFacts& device : facts.devices) {
      for (const auto& work : device.timeline.work) {
        ++works;
        if (work.before_recording || facts.links.launch_of[raw(work.slice)] != kNone<SliceId>)
          continue;
        if (without_launch++ == 0) first_work = work.slice;
      }
    }
  }
  const std::uint64_t dropped = trace.import_stats()[ImportIssue::kDroppedRecords].count;
  const bool work_is_lost = without_work >= 5 && without_work * 100 >= end;
  const bool launches_are_lost = without_launch >= 5 && without_launch * 100 >= works;
  if (!work_is_lost && !launches_are_lost && dropped == 0) return Quiet{};

  Finding finding;
  finding.kind = FindingKind::kTrust;
  if (work_is_lost)
    finding.verdict = say(
        "{} of {} kernel launches have no kernel in the trace, and not at its end: the recorder "
        "lost GPU work, so busy time is too small and gaps are too many.",
        {count(without_work), count(end)});
  else if (launches_are_lost)
    finding.verdict =
        say("{} of {} pieces of GPU work have no launch call in the trace though their streams had "
            "work with launches before: calls were not recorded.",
            {count(without_launch), count(works)});
  else
    finding.verdict =
        say("The recorder dropped {} records that it had no room for.", {count(dropped)});
  if (work_is_lost && launches_are_lost)
    finding.arithmetic.push_back(say("{} of {} pieces of GPU work have no launch call, either",
                                     {count(without_launch), count(works)}));
  if (dropped > 0 && (work_is_lost || launches_are_lost))
    finding.arithmetic.push_back(say("the recorder counts {} dropped records", {count(dropped)}));
  if (!work_is_lost && launches_are_lost)
    finding.arithmetic.push_back(
        say("they count as busy; gaps before them have no cause, and tables give them to no "
            "operator"));
  if (work_is_lost)
    finding.evidence.push_back({first_call, say("the first launch without kernel")});
  if (launches_are_lost)
    finding.evidence.push_back({first_work, say("the first piece of work without launch")});
  finding.try_next = {
      "record fewer steps at a time, or give the profiler larger buffers",
      "calls of other threads or processes may have been left out: record those, too"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = work_is_lost ? end : launches_are_lost ? works : dropped;
  finding.sample_noun = work_is_lost ? "launch call" : launches_are_lost ? "piece" : "record";
  return finding;
}

}  // namespace lanescope::explain::rules
