// GPU work begins long after its launch because the CPU runs ahead: normal, not a gap.
#include <algorithm>
#include <optional>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct LateStarts {
  SliceId latest = kNone<SliceId>;
  std::int64_t most_ns = 0;  // from launch to start
};

std::optional<LateStarts> measure_cpu_ahead(const Facts& facts) {
  const auto& launches = facts.launches;
  const auto& part = facts.wall.partition;
  // The kernels of a graph begin one after the other, which says nothing about the CPU.
  if (is_thin(facts) || launches.graph_work_count * 2 > launches.linked_count ||
      launches.median_latency_ns < 500'000 || launches.deepest_queue < 16 ||
      share_of(part.idle_ns, part.wall_ns) > 0.1)
    return std::nullopt;
  const Trace& trace = *facts.trace;
  SliceId latest = kNone<SliceId>;
  std::int64_t most_ns = 0;
  for (const auto& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId> || !inside(facts.steady_windows, work.start_ns)) continue;
    const std::int64_t lag_ns = work.start_ns - trace.end_ns(launch);
    if (lag_ns <= most_ns) continue;
    most_ns = lag_ns;
    latest = work.slice;
  }
  if (latest == kNone<SliceId>) return std::nullopt;
  return LateStarts{.latest = latest, .most_ns = most_ns};
}

Finding tell_cpu_ahead(const Facts& facts, const LateStarts& found) {
  const auto& launches = facts.launches;
  const auto& part = facts.wall.partition;
  Finding finding;
  finding.kind = FindingKind::kNormal;
  finding.verdict =
      say("GPU work begins {} after its launch in the median, up to {}: the CPU is that far ahead, "
          "and the GPU is hardly ever out of work. That is normal and costs nothing.",
          {ns(launches.median_latency_ns), ns(found.most_ns)});
  finding.arithmetic.push_back(
      say(facts,
          "up to {} [piece of work was|pieces of work were] waiting in the queue; the GPU "
          "was idle {} of the wall",
          {count(launches.deepest_queue), ratio(part.idle_ns, part.wall_ns)}));
  finding.evidence.push_back(
      {found.latest, say("launched {} before it began", {ns(found.most_ns)})});
  finding.try_next = {
      "change nothing. Measure a step's time on the GPU; to find the step of a kernel, look at its "
      "launch call"};
  finding.confidence = facts.confidence();
  finding.sample_count = launches.linked_count;
  finding.sample_noun = "launch call";
  return finding;
}

}  // namespace

extern constinit const Rule cpu_ahead_rule = {
    .id = "cpu-ahead",
    .question = "why does GPU work begin long after its launch?",
    .order = 320,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_cpu_ahead, tell_cpu_ahead>,
};

}  // namespace lanescope::explain::rules
