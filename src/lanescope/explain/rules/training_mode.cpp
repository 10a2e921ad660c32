// Dropout and batch norm do their training work in a program without a backward pass.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastTrainingModeShare = 0.02;

// The outermost dropout around an operator that draws its mask; kNone: it is in no dropout.
SliceId dropout_around(const Facts& facts, SliceId op) {
  SliceId found = kNone<SliceId>;
  for (SliceId up = op; up != kNone<SliceId>; up = facts.nesting.parent[raw(up)])
    if (facts.trace->kind(up) == CategoryKind::kCpuOp &&
        facts.trace->name(up).find("dropout") != std::string_view::npos)
      found = up;
  return found;
}

// True: normalises with the statistics of the batch and updates running ones. Inputs: [input,
// weight, bias, mean, variance, training, ...].
bool is_training_norm(const Facts& facts, SliceId op) {
  if (facts.trace->name(op) != "aten::batch_norm") return false;
  const SliceId around = facts.nesting.parent[raw(op)];
  if (around != kNone<SliceId> && facts.trace->name(around) == "aten::instance_norm") return false;
  const analysis::TensorArguments inputs = operator_inputs(*facts.trace, op);
  return inputs.flag(5).value_or(false) && inputs.tensor(3) != nullptr;
}

struct TrainingMode {
  std::uint64_t dropouts = 0, norms = 0;
  std::int64_t cost_ns = 0;  // of the dropouts, and a third of the norms'
  std::map<std::string, Named> by_name;
};

std::optional<TrainingMode> measure_training_mode(const Facts& facts) {
  const Trace& trace = *facts.trace;
  if (trains(facts)) return std::nullopt;
  const auto windows = facts.steady_cpu_windows();
  TrainingMode found;
  std::unordered_set<std::uint32_t> dropouts, norms;
  const auto is_looked_at = [](std::string_view name) {
    return name == "aten::bernoulli_" || name == "aten::native_dropout" ||
           name == "aten::batch_norm";
  };
  for (const SliceId id : slices_named(facts, is_looked_at)) {
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(windows, trace.start_ns(id))) continue;
    const std::string_view label = trace.name(id);
    SliceId costs = kNone<SliceId>;
    if (label == "aten::bernoulli_" || label == "aten::native_dropout") {
      costs = dropout_around(facts, id);
      if (costs == kNone<SliceId> || !dropouts.insert(raw(costs)).second) continue;
    } else if (is_training_norm(facts, id)) {
      costs = id;
      norms.insert(raw(id));
    } else {
      continue;
    }
    found.by_name[std::string(trace.name(costs))].add(costs, trace.dur_ns(costs));
  }
  found.dropouts = dropouts.size();
  if (dropouts.empty()) return std::nullopt;  // batch norm alone may adapt to its input by intent
  found.norms = norms.size();
  // The statistics of the batch need one more pass over the input: three, not two.
  found.cost_ns = cost_of_calls(facts, dropouts) + cost_of_calls(facts, norms) / 3;
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastTrainingModeShare)
    return std::nullopt;
  return found;
}

Finding tell_training_mode(const Facts& facts, const TrainingMode& found) {
  const auto steps = step_count(facts);
  Finding finding;
  finding.verdict = say(facts,
                        "Dropout draws random masks in a program without a backward pass: {} "
                        "[call|calls] [per step]; training mode costs {} [per step] ({}).",
                        {count(found.dropouts / steps), ns(facts.per_step(found.cost_ns)),
                         ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.dropouts, finding);
  finding.arithmetic.push_back(say(
      "counted: calls of dropout that draw a mask, which do nothing in eval mode, and a third of "
      "batch norm, which reads its input once more for the batch's statistics"));
  if (found.norms > 0)
    finding.arithmetic.push_back(
        say(facts, "batch norm, too, is in training mode: {} [call|calls] [per step]",
            {count(found.norms / steps)}));
  add_named(facts, found.by_name, finding);
  finding.try_next = {
      "call model.eval() before inference: results are random without it, and batch norm changes "
      "its statistics",
      "no change is needed if the randomness is wanted (Monte Carlo dropout), or if only the "
      "forward pass of a training step was recorded"};
  finding.brief = say(found.norms > 0 ? "Dropout and batch norm are in training mode, and no "
                                        "backward pass is in the trace"
                                      : "Dropout is in training mode, and no backward pass is in "
                                        "the trace");
  finding.action = say(
      "Right if the randomness is wanted (how sure is the model?); else call model.eval() before "
      "inference");
  return finding;
}

}  // namespace

extern constinit const Rule training_mode_rule = {
    .id = "training-mode",
    .question = "does a model that only infers run in training mode?",
    .meant_by = "eval dropout inference",
    .order = 443,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_training_mode, tell_training_mode>,
};

}  // namespace lanescope::explain::rules
