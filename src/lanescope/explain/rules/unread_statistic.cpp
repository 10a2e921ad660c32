// A large tensor is reduced to one number or a few in each step, without gradients, and no operator reads the result. Example:
// an entropy for a log that is written every hundredth step.
//
// Problem: a trace does not show which tensor an operator took. Idea: look for a run of calls in which each takes only what the
// run has made or began with, and which ends in a reduction to few elements. If no later operator of the step takes a tensor of
// that size, nothing in the step reads it. Gradients begin with the loss, which may have that size: what starts the backward
// pass, and detach, do not count as readers. Without a backward pass the result may be the purpose of the step.
// Example: log_softmax, exp, mul, sum of [2048, 64000], mean of
// [2048], neg of one number.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::TensorArguments;

namespace {

constexpr double kLeastStatisticShare = 0.05;
constexpr double kLeastStatisticInput = 65'536;  // elements of the tensor
constexpr double kMostOfStatisticInput = 1.0 / 64;
constexpr std::size_t kMostStatisticInputs = 4;  // of a call that are looked at

std::vector<Sizes> tensors_taken(const Trace& trace, SliceId op) {
  const TensorArguments inputs = operator_inputs(trace, op);
  std::vector<Sizes> taken;
  for (std::size_t k = 0; k < kMostStatisticInputs; ++k)
    if (const auto tensor = inputs.tensor(k)) taken.push_back(tensor->dims);
  return taken;
}

// A reduction in a run: what it makes has another size than what it takes.
bool is_reduction(std::string_view op, const TensorArguments& inputs) {
  const auto taken = taken_of(op, inputs, 0);
  return taken && (taken->kind == TakerKind::kAdds || taken->kind == TakerKind::kReduces);
}

// What one run of calls makes of one tensor.
struct Statistic {
  std::vector<SliceId> calls;
  SliceId reduction = kNone<SliceId>;  // the first
  Sizes input;
  double result_elements = 0;
};

class StatisticFinder {
 public:
  explicit StatisticFinder(const Facts& facts) : trace_(*facts.trace) {
    for (const AutogradPair& pair : autograd_pairs(facts)) for_backward_.insert(raw(pair.forward));
  }

  bool has_backward() const { return !for_backward_.empty(); }

  // The run that begins at `first`; nothing: it is none, or something may read its result.
  std::optional<Statistic> at(const CallSequence& calls, std::size_t first) const {
    const auto input = operator_inputs(trace_, calls[first]).tensor(0);
    if (!input || input->elements() < kLeastStatisticInput) return std::nullopt;
    Statistic found;
    found.input = input->dims;
    double result = input->elements();  // of what the last call made
    std::size_t next = first;
    for (; next < calls.size(); ++next) {
      const auto made = continued(calls[next], found, next == first, result);
      if (!made) break;
      found.calls.push_back(calls[next]);
      result = *made;
    }
    found.result_elements = result;
    if (found.reduction == kNone<SliceId> || result > kMostOfStatisticInput * input->elements() ||
        is_read(calls, next, result))
      return std::nullopt;
    return found;
  }

 private:
  // Elements of what this call makes as the next of the run; nothing: it does not belong to it.
  std::optional<double> continued(SliceId call, Statistic& run, bool is_first,
                                  double result) const {
    const std::string_view op = trace_.name(call);
    if (op.ends_with('_') || for_backward_.contains(raw(call)) || op.starts_with(kEvaluateNode))
      return std::nullopt;
    const TensorArguments inputs = operator_inputs(trace_, call);
    const auto first = inputs.tensor(0);
    if (!first || (!is_first && first->elements() != result)) return std::nullopt;
    // Its other inputs are numbers, or as large as what the run works on before its first reduction.
    for (std::size_t k = 1; k < kMostStatisticInputs; ++k)
      if (const auto other = inputs.tensor(k);
          other && other->rank() > 0 &&
          (run.reduction != kNone<SliceId> || other->dims != run.input))
        return std::nullopt;
    if (is_reduction(op, inputs)) {
      if (run.reduction == kNone<SliceId>) run.reduction = call;
      return taken_of(op, inputs, 0)->elements;
    }
    if (is_view(op)) return first->elements();
    if (!works_on_each_element(op) && !keeps_size(op)) return std::nullopt;
    return first->elements();
  }

  // Does an operator after the run take a tensor of as many elements?
  bool is_read(const CallSequence& calls, std::size_t from, double elements) const {
    for (std::size_t i = from; i < calls.size(); ++i) {
      const std::string_view op = trace_.name(calls[i]);
      if (op == "aten::ones_like" || op == "aten::detach") continue;
      for (const Sizes& taken : tensors_taken(trace_, calls[i]))
        if (analysis::element_count(taken) == elements) return true;
      const auto dims = trace_.slice_args(calls[i]).text(ArgKey::kInputDims);
      // The sizes in a list of tensors are not read one by one.
      if (dims && trace_.text(*dims).starts_with("[[[") && !op.starts_with("aten::_foreach"))
        return true;
    }
    return false;
  }

  const Trace& trace_;
  std::unordered_set<std::uint32_t> for_backward_;
};

struct UnreadStatistic {
  Statistic first;
  std::uint64_t times = 0;
  std::vector<SliceId> spared;
  std::int64_t cost_ns = 0;
};

std::optional<UnreadStatistic> measure_unread_statistic(const Facts& facts) {
  const StatisticFinder finder(facts);
  if (facts.selection.steady.size() < 2 || !finder.has_backward()) return std::nullopt;
  UnreadStatistic found;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto statistic = finder.at(calls, i);
      if (!statistic) continue;
      found.spared.insert(found.spared.end(), statistic->calls.begin(), statistic->calls.end());
      i += statistic->calls.size() - 1;
      if (found.times++ == 0) found.first = *std::move(statistic);
    }
  if (found.times < facts.selection.steady.size()) return std::nullopt;
  found.cost_ns = cost_of_spared(facts, found.spared);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastStatisticShare) return std::nullopt;
  return found;
}

Finding tell_unread_statistic(const Facts& facts, const UnreadStatistic& found) {
  const Statistic& first = found.first;
  const Value op = name(facts.trace->name(first.calls.front())),
              reduction = name(facts.trace->name(first.reduction)),
              shape = text(analysis::shape_text(first.input));
  Finding finding;
  finding.verdict =
      say(facts,
          "{} and the calls up to {} reduce {} to {} [element|elements], and no later "
          "operator of the step reads the result: {} [per step] ({}).",
          {op, reduction, shape, count(static_cast<std::uint64_t>(first.result_elements)),
           ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.times, finding);
  finding.sample_noun = "run";
  finding.spared_calls = found.spared;
  finding.arithmetic.push_back(say(
      "counted: calls in a row without gradients, each of which takes only what the one before it "
      "made, and before the first reduction the tensor that they began with; no operator after "
      "them in the step takes a tensor of as many elements as their result"));
  finding.evidence.push_back(
      called_at(facts, first.calls.front(), say("the first of these calls")));
  finding.try_next = {
      "if the result is only logged: compute it only in the steps that write the log",
      "or on a part of the rows, which is often enough for a log",
      "what no operator reads may still be kept, and read after the recording"};
  for (const char* covered :
       {"hotspot-kernel", "memory-roof", "no-roof", "unfused-chain", "costly-operator"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say(facts, "{} and what follows reduce {} to a result that no operator reads", {op, shape});
  finding.action = say("If it is for the log: compute it only in steps that write it");
  return finding;
}

}  // namespace

extern constinit const Rule unread_statistic_rule = {
    .id = "unread-statistic",
    .question = "is something measured in each step that no operator reads?",
    .meant_by = "metric statistic entropy accuracy log logging norm monitor",
    .order = 458,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_unread_statistic, tell_unread_statistic>,
};

}  // namespace lanescope::explain::rules
