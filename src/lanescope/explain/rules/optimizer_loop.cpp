// The optimizer runs one small kernel after the other for each tensor.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/explain/owner_rounds.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/parsed_kernel_names.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/names/torch_optimizers.h"
#include "lanescope/names/training_ranges.h"

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
      kNone<SliceId>;          // a call of torch._foreach_* that launches a kernel a tensor
  std::string_view optimizer;  // the class with most of the work
  std::uint64_t reads = 0;     // single values that the CPU reads
  // Half as many as tensors, or more: foreach=True still reads them one by one, as in Adafactor.
  bool reads_each() const { return reads * 2 >= parameters; }
};

// "Adafactor": of the range around most of the work. Empty: unknown.
std::string_view optimizer_of_loop(const Facts& facts, const PhaseWork& work) {
  std::map<std::string_view, std::uint64_t> pieces;
  for (const analysis::DeviceWork* each : work.works) {
    const SliceId call = facts.links.launch_of[raw(each->slice)];
    const SliceId step = call == kNone<SliceId> ? call : optimizer_step_around(facts, call);
    if (step != kNone<SliceId>) ++pieces[names::optimizer_of_step(facts.trace->name(step))];
  }
  std::string_view found;
  std::uint64_t most = 0;
  for (const auto& [optimizer, count] : pieces)
    if (count > most) {
      most = count;
      found = optimizer;
    }
  return found;
}

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
  const KernelNames names(facts);
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
  const auto reads = work.ops.find("aten::_local_scalar_dense");
  return OptimizerLoop{.work = work,
                       .kernels = kernels,
                       .parameters = parameters,
                       .busy_ns = busy_ns,
                       .kept_ns = kept_ns,
                       .waiting_ns = wait.time_ns,
                       .saved_ns = saved_ns,
                       .slow_foreach = slow_foreach_of(facts, work),
                       .optimizer = optimizer_of_loop(facts, work),
                       .reads = reads == work.ops.end() ? 0 : reads->second.kernels};
}

// What the optimizer has instead of the loop.
void advise_form(const Trace& trace, const OptimizerLoop& measured, Finding& finding) {
  if (is_before_foreach(trace)) {
    finding.action = say("Pass foreach=True to the optimizer, which needs PyTorch 1.12 or later");
    finding.try_next = {
        "with PyTorch 1.12 or later, pass foreach=True to the optimizer: few calls for all "
        "parameters; fused=True needs a newer one still"};
    return;
  }
  const auto* forms = names::forms_of_optimizer(measured.optimizer);
  const Value optimizer = name(measured.optimizer);
  const bool foreach_is_on = measured.slow_foreach != kNone<SliceId>;
  constexpr char kCompiled[] = "or use torch.compile(optimizer.step)";
  if (!forms) {
    finding.action = foreach_is_on
                         ? say("Pass fused=True to the optimizer, if it has it")
                         : say("Pass fused=True or else foreach=True to the optimizer, if it has "
                               "them; or torch.compile(optimizer.step)");
    finding.try_next = {
        "pass fused=True where the optimizer has it (Adam, AdamW, SGD, Adagrad), else foreach=True",
        kCompiled};
  } else if (forms->has_fused) {
    finding.action = foreach_is_on
                         ? say("Pass fused=True to {}", {optimizer})
                         : say("Pass fused=True to {}, or else foreach=True", {optimizer});
    finding.try_next = {"pass fused=True to the optimizer, else foreach=True", kCompiled};
  } else if (forms->has_foreach && !foreach_is_on) {
    finding.action = say("Pass foreach=True to torch.optim.{}: it has no fused form", {optimizer});
    finding.try_next = {"pass foreach=True to the optimizer: it has no fused form", kCompiled};
  } else {
    finding.action = say("{} has no faster form: join its small tensors into few", {optimizer});
    finding.try_next = {"join small parameters into one tensor, so that the loop has fewer rounds"};
  }
  if (foreach_is_on)
    finding.try_next.push_back(
        "foreach is on, but some of its calls launch a kernel for each tensor, such as a division "
        "by a list of tensors with capturable=True");
}

Finding tell_optimizer_loop(const Facts& facts, const OptimizerLoop& measured) {
  const auto& work = measured.work;
  const std::uint64_t kernels = measured.kernels;
  const std::uint64_t steps = steps_of(facts);
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  const std::int64_t waits_ns = facts.per_step(measured.waiting_ns);
  finding.verdict = say(facts,
                        "The optimizer loops over its tensors: {} kernels [per step] in "
                        "Optimizer.step, {} of GPU time",
                        {count(kernels / steps), ns(facts.per_step(measured.busy_ns))});
  if (waits_ns > 0) {
    finding.verdict.pattern += ", while the GPU waits {} for their launches";
    finding.verdict.values.push_back(ns(waits_ns));
  }
  const auto* forms = names::forms_of_optimizer(measured.optimizer);
  finding.verdict.pattern += !forms || forms->has_fused ? ". A fused step is a few kernels."
                             : forms->has_foreach
                                 ? ". With foreach each operation is one kernel for many tensors."
                                 : ".";
  finding.at_stake_ns = facts.per_step(measured.saved_ns);
  finding.at_stake_ratio = share_of(measured.saved_ns, wall_ns);
  Sentence sum =
      say(facts, "kernels {} - one pass over about {} [tensor|tensors], {}: at most {} [per step]",
          {ns(facts.per_step(measured.busy_ns)), count(measured.parameters / steps),
           ns(facts.per_step(measured.kept_ns)), ns(facts.per_step(measured.saved_ns))});
  if (waits_ns > 0) {
    sum.pattern = "waiting {} + " + sum.pattern;
    sum.values.insert(sum.values.begin(), ns(waits_ns));
  }
  finding.arithmetic.push_back(std::move(sum));
  add_ops(work, finding);
  finding.confidence = facts.confidence();
  finding.sample_count = kernels;
  finding.sample_noun = "kernel";
  finding.brief = say(facts, "The optimizer loops over its tensors: {} kernels [per step]",
                      {count(kernels / steps)});
  advise_form(*facts.trace, measured, finding);
  if (measured.reads_each()) {
    finding.gain_is_bound = true;
    finding.arithmetic.push_back(
        say(facts,
            "the CPU reads {} single [value|values] [per step] in the optimizer's step (item()); "
            "if these reads stay, less than that is saved",
            {count(measured.reads / steps)}));
  }
  if (measured.slow_foreach != kNone<SliceId>) {
    finding.brief =
        say(facts, "The optimizer's foreach goes tensor by tensor in {}: {} kernels [per step]",
            {name(facts.trace->name(measured.slow_foreach)), count(kernels / steps)});
    finding.evidence.insert(finding.evidence.begin(),
                            {measured.slow_foreach, say("launches a kernel for each tensor")});
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
