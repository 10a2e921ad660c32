// The wait for the device at the end of the recording looks like the largest call, but it is not
// the program's own.
#include <algorithm>
#include <optional>

#include "lanescope/analysis/launching_calls.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct FinalSync {
  SliceId sync = kNone<SliceId>;
  std::int64_t busy = 0;  // of the GPU, during the call
};

std::optional<FinalSync> measure_final_sync(const Facts& facts) {
  // If GPU work is missing, it is unknown what this call waited for.
  if (facts.kernel_launches.gpu_stops_early() || facts.trace->import_stats().is_truncated())
    return std::nullopt;
  const Trace& trace = *facts.trace;
  SliceId sync = kNone<SliceId>;
  std::int64_t last_launch_ns = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_api_call(trace.kind(id))) continue;
    if (analysis::launches_work(trace, facts.links, id))
      last_launch_ns = std::max(last_launch_ns, trace.start_ns(id));
    if (!trace.api_call(id).does(api_effect::kWaitsForDevice)) continue;
    if (sync == kNone<SliceId> || trace.end_ns(id) > trace.end_ns(sync)) sync = id;
  }
  if (sync == kNone<SliceId> || trace.start_ns(sync) < last_launch_ns ||
      trace.dur_ns(sync) < 100'000)
    return std::nullopt;
  const auto times = facts.device().timeline.time_within(trace.start_ns(sync), trace.end_ns(sync));
  const std::int64_t busy = times[0] + times[1] + times[2];
  return FinalSync{.sync = sync, .busy = busy};
}

Finding tell_final_sync(const Facts& facts, const FinalSync& found) {
  const Trace& trace = *facts.trace;
  Finding finding;
  const bool backlog = wide(found.busy) * 10 > wide(trace.dur_ns(found.sync)) * 9;
  finding.kind = FindingKind::kNormal;
  finding.verdict =
      say("{} of {} at the end is normal: {}.",
          {name(trace.name(found.sync)), ns(trace.dur_ns(found.sync)),
           text(backlog ? "the CPU was ahead and waits until the GPU has done what was launched"
                : found.busy * 2 > trace.dur_ns(found.sync)
                    ? "most of it is the wait for work that was launched before"
                    : "the recording ends with it, and the GPU has almost nothing left to do")});
  finding.arithmetic.push_back(say(
      "the GPU worked {} of these {} ({})",
      {ns(found.busy), ns(trace.dur_ns(found.sync)), ratio(found.busy, trace.dur_ns(found.sync))}));
  finding.evidence.push_back({found.sync, say("after the last launch of the trace")});
  finding.try_next = {"change nothing, and do not count it as part of a step"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = 1;
  finding.sample_noun = "call";
  return finding;
}

}  // namespace

extern constinit const Rule final_sync_rule = {
    .id = "final-sync",
    .question = "what is the long synchronize at the end?",
    .meant_by = "cudadevicesynchronize sync",
    .order = 220,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_final_sync, tell_final_sync>,
};

}  // namespace lanescope::explain::rules
