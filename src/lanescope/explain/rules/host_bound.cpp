// The GPU runs out of work because the CPU has not launched the next piece yet.
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

Outcome host_bound(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  if (!has_launches(facts)) return NotChecked{kNeedsLaunches};
  if (!is_host_bound(facts)) return Quiet{};
  const auto& part = facts.wall.partition;
  const auto& launches = facts.launches;
  const std::int64_t waiting = facts.waiting_for_cpu_ns();

  Finding finding;
  finding.kind = FindingKind::kBound;
  finding.verdict =
      say("CPU-bound: of the {} a step takes, the GPU works {} and waits for the CPU {} ({}).",
          {ns(facts.per_step(part.wall_ns)), ns(facts.per_step(part.busy_ns())),
           ns(facts.per_step(waiting)), ratio(waiting, part.wall_ns)});
  finding.at_stake_ns = facts.per_step(waiting);
  finding.at_stake_ratio = share_of(waiting, part.wall_ns);
  Sentence parts =
      say("waiting for the CPU = not yet launched {} + empty after a wait {} + launch latency {}",
          {ns(facts.per_step(facts.wall.idle_by(analysis::IdleCause::kHostLate))),
           ns(facts.per_step(facts.wall.idle_by(analysis::IdleCause::kAfterSync))),
           ns(facts.per_step(facts.wall.idle_by(analysis::IdleCause::kLaunchLatency)))});
  if (facts.idle_at_ends_ns() > 0) {
    parts.pattern += " + before the first and after the last launch of the recording {}";
    parts.values.push_back(ns(facts.per_step(facts.idle_at_ends_ns())));
  }
  finding.arithmetic.push_back(std::move(parts));
  finding.arithmetic.push_back(
      say("{} of {} kernels, copies and memsets began with nothing queued behind them",
          {count(launches.empty_queue_count), count(launches.linked_count)}));
  if (launches.median_kernel_ns > 0)
    finding.arithmetic.push_back(
        say("median kernel {}, median launch call {}, from launch to start {}",
            {ns(launches.median_kernel_ns), ns(launches.median_launch_ns),
             ns(launches.median_latency_ns)}));
  add_host_evidence(facts, host_shares(facts, host_late_stretches(facts)), finding);
  finding.try_next = {
      "more work per launch: a larger batch, fused operators, torch.compile",
      "replay the step as a CUDA graph (torch.compile(mode=\"reduce-overhead\"), "
      "torch.cuda.make_graphed_callables) if its shapes stay the same",
      "time the step without a profiler: recording slows the CPU, so part of the wait is its own"};
  finding.confidence = facts.confidence();
  finding.sample_count = facts.steady.size();
  return finding;
}

}  // namespace lanescope::explain::rules
