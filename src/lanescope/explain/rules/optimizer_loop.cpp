// The optimizer runs one small kernel after the other for each tensor.
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/parsed_kernel_names.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Phase;

namespace {

struct OptimizerLoop {
  PhaseWork work;
  std::uint64_t kernels = 0;
  std::uint64_t parameters = 0;
  std::int64_t busy_ns = 0;
  std::int64_t kept_ns = 0;
  std::int64_t waiting_ns = 0;
  std::int64_t saved_ns = 0;
  SliceId slow_foreach =
      kNone<SliceId>;  // a call of torch._foreach_* that launches a kernel a tensor
};

// The call with most of the kernels, if calls of torch._foreach_* launch half of those that are for one tensor, or more: foreach is
// on, and goes through its tensors one by one. kNone: they do not.
SliceId slow_foreach_of(const Facts& facts, const PhaseWork& work) {
  constexpr std::uint64_t kManyKernels = 4;  // a list may need some
  std::map<std::uint32_t, std::uint64_t> kernels;
  for (const analysis::DeviceWork* each : work.works)
    if (const SliceId call =
            ancestor_named(facts, facts.links.op_of[raw(each->slice)], "aten::_foreach_");
        call != kNone<SliceId>)
      ++kernels[raw(call)];
  std::uint64_t in_slow = 0, most = 0;
  SliceId found = kNone<SliceId>;
  for (const auto& [call, launched] : kernels) {
    if (launched < kManyKernels) continue;
    in_slow += launched;
    if (launched > most) found = SliceId{call};
    most = std::max(most, launched);
  }
  return in_slow * 2 >= work.works.size() - work.multi_tensor ? found : kNone<SliceId>;
}

Measurement<OptimizerLoop> measure_optimizer_loop(const Facts& facts) {
  const auto& phases = training_phases(facts);
  const PhaseWork work = work_of(facts, phases, Phase::kOptimizer);
  if (!work.any_range)
    return trains(facts) ? Measurement<OptimizerLoop>(NotChecked{kNeedsOptimizer}) : Quiet{};
  std::uint64_t kernels = 0, elementwise = 0, most = 0;
  KernelNames names(*facts.trace);
  for (const auto& [label, op] : work.ops) {
    // State that is filled with zeros: an optimizer does that once.
    if (label == "aten::fill_" || label == "aten::zero_") continue;
    kernels += op.kernels;
    // Optimizers with matmuls or other special work (Shampoo, Muon, EMA) are no loop to fuse.
    if (names.of(op.longest).variant != "elementwise") continue;
    elementwise += op.kernels;
    most = std::max(most, op.kernels);
  }
  const std::uint64_t steps = steps_of(facts);
  if (elementwise < 30 * steps || elementwise * 2 < kernels || work.multi_tensor * 2 > kernels ||
      most < 10 * steps)
    return Quiet{};
  // One pass over the parameters has to stay: the loop makes kernels / parameters passes.
  std::uint64_t parameters = most;
  for (const auto& [label, op] : work.ops)
    if (op.kernels * 2 >= most) parameters = std::min(parameters, op.kernels);
  const std::int64_t busy_ns = union_ns(work.works);
  const std::int64_t kept_ns =
      static_cast<std::int64_t>(static_cast<double>(busy_ns) * static_cast<double>(parameters) /
                                static_cast<double>(kernels));
  const WaitTime wait =
      waiting_while(facts, [&](SliceId slice) { return phases[raw(slice)] == Phase::kOptimizer; });
  const std::int64_t saved_ns = wait.time_ns + busy_ns - kept_ns;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (share_of(saved_ns, wall_ns) < 0.01) return Quiet{};
  const SliceId slow_foreach = slow_foreach_of(facts, work);
  return OptimizerLoop{work,    kernels,      parameters, busy_ns,
                       kept_ns, wait.time_ns, saved_ns,   slow_foreach};
}

Finding tell_optimizer_loop(const Facts& facts, const OptimizerLoop& measured) {
  const auto& [work, kernels, parameters, busy_ns, kept_ns, waiting_ns, saved_ns, slow_foreach] =
      measured;
  const std::uint64_t steps = steps_of(facts);
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  const std::int64_t waits_ns = facts.per_step(waiting_ns);
  finding.verdict = say(facts,
                        "The optimizer loops over its tensors: {} kernels [per step] in "
                        "Optimizer.step, {} of GPU time",
                        {count(kernels / steps), ns(facts.per_step(busy_ns))});
  if (waits_ns > 0) {
    finding.verdict.pattern += ", while the GPU waits {} for their launches";
    finding.verdict.values.push_back(ns(waits_ns));
  }
  finding.verdict.pattern += ". A fused step is a few kernels.";
  finding.at_stake_ns = facts.per_step(saved_ns);
  finding.at_stake_ratio = share_of(saved_ns, wall_ns);
  Sentence sum =
      say(facts, "kernels {} - one pass over about {} [tensor|tensors], {}: at most {} [per step]",
          {ns(facts.per_step(busy_ns)), count(parameters / steps), ns(facts.per_step(kept_ns)),
           ns(facts.per_step(saved_ns))});
  if (waits_ns > 0) {
    sum.pattern = "waiting {} + " + sum.pattern;
    sum.values.insert(sum.values.begin(), ns(waits_ns));
  }
  finding.arithmetic.push_back(std::move(sum));
  add_ops(work, finding);
  finding.try_next = {
      "pass fused=True where the optimizer has it (Adam, AdamW, SGD, Adagrad), else foreach=True",
      "or use torch.compile(optimizer.step)"};
  finding.confidence = facts.confidence();
  finding.sample_count = kernels;
  finding.sample_noun = "kernel";
  finding.brief = say(facts, "The optimizer loops over its tensors: {} kernels [per step]",
                      {count(kernels / steps)});
  finding.action = say("Pass fused=True to the optimizer (Adam, AdamW, SGD), or else foreach=True");
  if (slow_foreach != kNone<SliceId>) {
    const auto op = name(facts.trace->name(slow_foreach));
    finding.brief =
        say(facts, "The optimizer's foreach goes tensor by tensor in {}: {} kernels [per step]",
            {op, count(kernels / steps)});
    finding.action = say("Pass fused=True to the optimizer (Adam, AdamW, SGD)");
    finding.try_next.front() =
        "pass fused=True where the optimizer has it (Adam, AdamW, SGD, Adagrad); foreach is on, "
        "but "
        "some of its calls launch a kernel for each tensor, such as a division by a list of "
        "tensors "
        "with capturable=True";
    finding.evidence.insert(finding.evidence.begin(),
                            {slow_foreach, say("launches a kernel for each tensor")});
  }
  return finding;
}

}  // namespace

extern constinit const Rule optimizer_loop_rule = {
    .id = "optimizer-loop",
    .question = "does the optimizer loop over its tensors?",
    .meant_by = "adam adamw sgd",
    .order = 750,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_optimizer_loop, tell_optimizer_loop>,
    .is_regression = true,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules
