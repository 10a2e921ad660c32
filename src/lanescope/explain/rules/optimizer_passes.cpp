// The optimizer runs list by list (foreach): a kernel for each of its operations, which all read and write the whole lists.
// A fused one reads and writes each value once.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/names/torch_optimizers.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {

using analysis::Phase;

namespace {

constexpr double kLeastPassesShare = 0.05;
constexpr std::size_t kFewestOperations = 4;

// Optimizers of torch that have a fused form.
bool has_fused_form(std::string_view range) {
  const auto* forms = names::forms_of_optimizer(names::optimizer_of_step(range));
  return forms && forms->has_fused;
}

struct OptimizerPasses {
  PhaseWork work;
  std::uint64_t operations = 0;  // different ones
  std::int64_t busy_ns = 0;
  std::int64_t slowest_ns = 0;  // of the operation with most time
  // One kernel reads the parameter, its gradient and its state, and writes two of them or three: twice what the
  // slowest operation moves (addcdiv reads three lists and writes one).
  std::int64_t kept_ns() const { return std::min(busy_ns, 2 * slowest_ns); }
  std::int64_t saved_ns() const { return busy_ns - kept_ns(); }
};

std::optional<OptimizerPasses> measure_optimizer_passes(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::vector<SliceId>& steps = optimizer_steps(facts);
  if (std::none_of(steps.begin(), steps.end(),
                   [&](SliceId step) { return has_fused_form(trace.name(step)); }))
    return std::nullopt;
  OptimizerPasses found;
  found.work = work_of(facts, training_phases(facts), Phase::kOptimizer);
  // Kernels over lists of tensors have nearly all of the work.
  if (found.work.multi_tensor * 10 < found.work.works.size() * 9) return std::nullopt;
  for (const auto& [label, op] : found.work.ops) {
    if (!label.starts_with("aten::_foreach_")) continue;
    ++found.operations;
    found.slowest_ns = std::max(found.slowest_ns, op.gpu_ns);
  }
  if (found.operations < kFewestOperations) return std::nullopt;
  found.busy_ns = union_ns(found.work.works);
  if (share_of(found.saved_ns(), facts.wall.partition.wall_ns) < kLeastPassesShare)
    return std::nullopt;
  return found;
}

Finding tell_optimizer_passes(const Facts& facts, const OptimizerPasses& found) {
  Finding finding;
  finding.verdict = say(
      facts,
      "The optimizer runs {} operations over all parameters, one after the other: {} [per step] "
      "of GPU time in {} [kernel|kernels].",
      {count(found.operations), ns(facts.per_step(found.busy_ns)),
       count(found.work.works.size() / steps_of(facts))});
  finding.at_stake_ns = facts.per_step(found.saved_ns());
  finding.at_stake_ratio = share_of(found.saved_ns(), facts.wall.partition.wall_ns);
  finding.arithmetic.push_back(say(
      facts, "kernels {} - one fused pass, about twice the slowest operation, {}: {} [per step]",
      {ns(facts.per_step(found.busy_ns)), ns(facts.per_step(found.kept_ns())),
       ns(finding.at_stake_ns)}));
  add_ops(found.work, finding);
  finding.try_next = {"pass fused=True to the optimizer: it reads and writes each value once"};
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  finding.explains.push_back({"optimizer-share", finding.at_stake_ns});
  finding.brief = say("The optimizer runs {} operations over all parameters, one after the other",
                      {count(found.operations)});
  finding.action = say("Pass fused=True to the optimizer: one pass over memory");
  return finding;
}

}  // namespace

extern constinit const Rule optimizer_passes_rule = {
    .id = "optimizer-passes",
    .question = "does the optimizer read its tensors more often than a fused one?",
    .meant_by = "adam adamw sgd fused foreach",
    .order = 752,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_optimizer_passes, tell_optimizer_passes>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
