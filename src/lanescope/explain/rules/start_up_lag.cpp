// The GPU's lane begins late: the first call to the GPU waited until the recorder was set up.
#include <algorithm>
#include <limits>
#include <optional>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr std::int64_t kShortestLagNs = 300'000;

// Where the CPU's lane begins: the first operator, annotation or call of the launching thread.
std::int64_t first_cpu_event_ns(const Facts& facts) {
  const Track& track = facts.trace->track(facts.main_thread);
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const CategoryKind kind = facts.trace->kind(SliceId{i});
    if (is_front_end(kind) || is_api_call(kind)) return facts.trace->start_ns(SliceId{i});
  }
  return std::numeric_limits<std::int64_t>::max();
}

struct StartUpLag {
  std::int64_t late_ns = 0;
  std::int64_t profiler_ns = 0;
  SliceId request = kNone<SliceId>;
  SliceId first = kNone<SliceId>;
};

std::optional<StartUpLag> measure_start_up_lag(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& first = facts.device().timeline.work.front();
  // Work from before the recording: the lane does not begin late.
  if (facts.links.launch_of[raw(first.slice)] == kNone<SliceId> ||
      facts.main_thread == kNone<TrackId>)
    return std::nullopt;
  std::int64_t profiler_ns = 0;
  SliceId request = kNone<SliceId>;
  std::int64_t from_ns = first_cpu_event_ns(facts);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kOverhead || !analysis::is_profiler_overhead(trace, id) ||
        trace.end_ns(id) > first.start_ns)
      continue;
    from_ns = std::min(from_ns, trace.start_ns(id));
    profiler_ns += trace.dur_ns(id);
    if (request == kNone<SliceId> || trace.dur_ns(id) > trace.dur_ns(request)) request = id;
  }
  const std::int64_t late_ns = first.start_ns - from_ns;
  if (profiler_ns < kShortestLagNs || profiler_ns * 2 < late_ns) return std::nullopt;
  return StartUpLag{late_ns, profiler_ns, request, first.slice};
}

Finding tell_start_up_lag(const Facts& facts, const StartUpLag& measured) {
  const Trace& trace = *facts.trace;
  const auto& [late_ns, profiler_ns, request, first] = measured;
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.verdict =
      say("The GPU's lane begins {} after the CPU's, because the recorder was setting up for {} of "
          "it: this is no part of the program, and it ends after the first calls.",
          {ns(late_ns), ns(std::min(profiler_ns, late_ns))});
  finding.at_stake_ns = std::min(profiler_ns, late_ns);
  finding.explains = {{"profiler-stall", finding.at_stake_ns}};
  if (facts.steps.marked)
    finding.explains.push_back(
        {"slow-first-step", std::min(finding.at_stake_ns, facts.device().walls.front().idle_by(
                                                              analysis::IdleCause::kProfiler))});
  finding.arithmetic.push_back(
      say("from the first event of the launching thread, or this overhead where it comes first, to "
          "the first GPU work"));
  finding.evidence.push_back({request, say("{}", {name(trace.name(request))})});
  finding.evidence.push_back({first, say("the first GPU work")});
  finding.try_next = {
      "ignore the first step; schedule(wait=1, warmup=1, active=5) gives the recorder a step to "
      "set up"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = 1;
  finding.sample_noun = "recording";
  return finding;
}

}  // namespace

extern constinit const Rule start_up_lag_rule = {
    .id = "start-up-lag",
    .question = "why does the GPU's lane begin so late?",
    .order = 310,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_start_up_lag, tell_start_up_lag>,
};

}  // namespace lanescope::explain::rules
