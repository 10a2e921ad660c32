// So many kernels of a few microseconds that launching them is the work.
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

Outcome tiny_kernels(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  if (!has_launches(facts)) return NotChecked{kNeedsLaunches};
  const auto& launches = facts.launches;
  const auto steps = static_cast<std::uint64_t>(facts.steady.size());
  // A long wait is not the launch's: it has another cause. Short ones, each before a tiny kernel,
  // are.
  constexpr std::int64_t kLongestWaitNs = 100'000;
  std::int64_t waiting = 0;
  for (const analysis::Gap& gap : facts.device().gaps.gaps) {
    if (gap.next_work == kNone<SliceId> || gap.end_ns - gap.start_ns > kLongestWaitNs ||
        facts.trace->dur_ns(gap.next_work) >= analysis::kTinyKernelNs ||
        !inside(facts.steady_windows, gap.start_ns))
      continue;
    for (const analysis::IdlePart& part : facts.device().gaps.parts_of(gap))
      if (part.cause == analysis::IdleCause::kHostLate ||
          part.cause == analysis::IdleCause::kLaunchLatency)
        waiting += part.end_ns - part.start_ns;
  }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (steps == 0 || launches.kernel_count < 200 * steps ||
      launches.tiny_kernel_count * 2 < launches.kernel_count ||
      launches.graph_work_count * 2 > launches.linked_count || share_of(waiting, wall_ns) < 0.1)
    return Quiet{};
  Finding finding;
  finding.verdict =
      say("Launch-bound: {} kernels per step, {} of them shorter than 10 us; in gaps of up to "
          "100 us the GPU waits {} per step for their launches.",
          {count(launches.kernel_count / steps),
           ratio(static_cast<std::int64_t>(launches.tiny_kernel_count),
                 static_cast<std::int64_t>(launches.kernel_count)),
           ns(facts.per_step(waiting))});
  finding.at_stake_ns = facts.per_step(waiting);
  finding.at_stake_ratio = share_of(waiting, wall_ns);
  finding.arithmetic.push_back(
      say("median kernel {}; {} of {} kernels ran shorter than their own "
          "launch call took",
          {ns(launches.median_kernel_ns), count(launches.shorter_than_launch_count),
           count(launches.kernel_count)}));
  finding.arithmetic.push_back(say(
      "{} launch calls per step take {} of CPU time, the operators around them take the rest",
      {count(launches.launch_call_count / steps), ns(facts.per_step(launches.launch_call_ns))}));
  finding.try_next = {
      "fewer, larger kernels: torch.compile, fused or foreach optimizers, a larger "
      "batch",
      "a CUDA graph launches the whole step at once"};
  finding.confidence = facts.confidence();
  finding.sample_count = launches.kernel_count;
  finding.sample_noun = "kernel";
  finding.brief = say("The GPU waits for launches: {} kernels per step, {} shorter than 10 us",
                      {count(launches.kernel_count / steps),
                       ratio(static_cast<std::int64_t>(launches.tiny_kernel_count),
                             static_cast<std::int64_t>(launches.kernel_count))});
  finding.action = say("torch.compile(model, mode=\"reduce-overhead\"), or a larger batch");
  return finding;
}

}  // namespace lanescope::explain::rules
