// How much of the step is the optimizer, whose time does not depend on the batch.
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Phase;

namespace {

struct OptimizerShare {
  PhaseWork work;
  std::int64_t optimizer_ns = 0;
  std::int64_t busy_ns = 0;
};

Measurement<OptimizerShare> measure_optimizer_share(const Facts& facts) {
  const auto& phases = training_phases(facts);
  const PhaseWork work = work_of(facts, phases, Phase::kOptimizer);
  if (!work.any_range)
    return trains(facts) ? Measurement<OptimizerShare>(NotChecked{kNeedsOptimizer}) : Quiet{};
  const std::int64_t optimizer_ns = union_ns(work.works);
  const std::int64_t busy_ns = facts.wall.partition.busy_ns();
  if (is_thin(facts) || share_of(optimizer_ns, busy_ns) < 0.15) return Quiet{};
  return OptimizerShare{work, optimizer_ns, busy_ns};
}

Finding tell_optimizer_share(const Facts& facts, const OptimizerShare& measured) {
  const auto& [work, optimizer_ns, busy_ns] = measured;
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict = say(facts,
                        "The optimizer takes {} of the GPU's busy time, {} [per step]: its kernels "
                        "read and write every parameter, gradient and state at least once, and "
                        "that does not depend on the batch size.",
                        {ratio(optimizer_ns, busy_ns), ns(facts.per_step(optimizer_ns))});
  finding.at_stake_ns = facts.per_step(optimizer_ns);
  finding.at_stake_ratio = share_of(optimizer_ns, facts.wall.partition.wall_ns);
  finding.arithmetic.push_back(say(
      facts, "{} [kernel|kernels] [per step], {} of them over lists of tensors",
      {count(work.works.size() / steps_of(facts)), count(work.multi_tensor / steps_of(facts))}));
  add_ops(work, finding);
  finding.try_next = {
      "process more samples per optimizer step (a larger batch, accumulated gradients): the "
      "optimizer's time stays, its share falls",
      "use fused=True, states in fewer bits, or with several GPUs sharded states (FSDP, ZeRO)"};
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule optimizer_share_rule = {
    .id = "optimizer-share",
    .question = "is the optimizer a large part of the step?",
    .meant_by = "adam adamw sgd",
    .order = 760,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_optimizer_share, tell_optimizer_share>,
};

}  // namespace lanescope::explain::rules
