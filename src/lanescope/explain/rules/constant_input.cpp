// A large tensor that no operator makes or writes is prepared again in each step, before a product with what is new in the step:
// the vectors of a database are normalised for each query.
//
// Problem: a trace does not show which tensor an operator took. Idea: follow, from the first operator that takes a tensor of a
// size, all that follows from it alone, until a product takes the result together with something else. If nothing but these
// operators may have made a tensor of that size (tensor_makers.h), their input came from outside of the step. Example:
// linalg_vector_norm, clamp_min and div of [2000000, 256], then matmul of [8, 256] and [256, 2000000].
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/tensor_makers.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::Tensor;
using analysis::TensorArguments;

namespace {

constexpr double kLeastConstantInputShare = 0.1;
constexpr double kLeastInputElements = 1 << 20;
constexpr double kMostOfOther =
    0.125;  // of the input's elements: what is new in the step is much smaller
constexpr std::size_t kMostInputsOfCall = 4;

// The tensor from outside, and what follows from it alone: sums and norms of its rows.
struct OutsideInput {
  Tensor tensor;
  std::vector<double> reduced;  // elements of results that are smaller

  bool is_whole(const Tensor& other) const { return other.dims == tensor.dims; }
  bool holds(const Tensor& other) const {
    return is_whole(other) ||
           (other.rank() > 0 && other.dims[0] == tensor.dims[0] &&
            std::find(reduced.begin(), reduced.end(), other.elements()) != reduced.end());
  }
};

enum class Takes : std::uint8_t { kNothing, kOnlyInput, kBoth };
Takes taken_by(const OutsideInput& input, const TensorArguments& inputs) {
  bool holds = false, other = false;
  for (std::size_t k = 0; k < kMostInputsOfCall; ++k) {
    const auto tensor = inputs.tensor(k);
    if (!tensor || tensor->rank() == 0) continue;
    (input.holds(*tensor) ? holds : other) = true;
  }
  return !holds ? Takes::kNothing : other ? Takes::kBoth : Takes::kOnlyInput;
}

// Not that of a layer's weight, which goes through aten::linear.
bool is_pair_product(std::string_view op) {
  return op == "aten::matmul" || op == "aten::mm" || op == "aten::bmm" || op == "aten::cdist";
}

// A matrix product of the input, transposed or not, with something much smaller.
bool is_product_with_new(std::string_view op, const TensorArguments& inputs,
                         const Tensor& whole_input) {
  if (!is_pair_product(op)) return false;
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  if (!a || !b) return false;
  const double whole = whole_input.elements();
  const double other = a->elements() == whole   ? b->elements()
                       : b->elements() == whole ? a->elements()
                                                : whole;
  return other <= whole * kMostOfOther;
}

struct Prepared {
  Tensor tensor;
  std::vector<SliceId> calls;
  SliceId product = kNone<SliceId>;
};

// What the operator at `first` and those after it prepare.
std::optional<Prepared> prepared_from(const Trace& trace, const CallSequence& calls,
                                      std::size_t first) {
  const std::string_view op = trace.name(calls[first]);
  if (op.ends_with('_') || is_view(op)) return std::nullopt;
  const TensorArguments own = operator_inputs(trace, calls[first]);
  const auto tensor = own.tensor(0);
  if (!tensor || tensor->rank() < 2 || tensor->elements() < kLeastInputElements ||
      (!keeps_size(op) && !taken_of(op, own, 0)))
    return std::nullopt;
  OutsideInput outside{*tensor, {}};
  Prepared found{*tensor, {}, kNone<SliceId>};
  bool is_whole_made = false;
  for (std::size_t i = first; i < calls.size(); ++i) {
    const std::string_view name = trace.name(calls[i]);
    if (name.starts_with(kEvaluateNode)) return std::nullopt;
    if (is_view(name)) continue;
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    if (is_whole_made && is_product_with_new(name, inputs, *tensor)) {
      found.product = calls[i];
      return found;
    }
    switch (taken_by(outside, inputs)) {
      case Takes::kNothing:
        continue;
      case Takes::kBoth:
        return std::nullopt;
      case Takes::kOnlyInput:
        break;
    }
    if (name.ends_with('_')) return std::nullopt;
    const auto input = inputs.tensor(0);
    if (const auto taken = taken_of(name, inputs, 0); taken && input && outside.is_whole(*input))
      outside.reduced.push_back(taken->elements);
    else if (!keeps_size(name) || !input)
      return std::nullopt;
    else
      is_whole_made = is_whole_made || outside.is_whole(*input);
    found.calls.push_back(calls[i]);
  }
  return std::nullopt;
}

// Calls from here on prepare nothing: no product follows.
std::size_t end_of_products(const Trace& trace, const CallSequence& calls) {
  std::size_t end = calls.size();
  while (end > 0 && !is_pair_product(trace.name(calls[end - 1]))) --end;
  return end;
}

struct ConstantInput {
  Prepared first;
  std::unordered_set<std::uint32_t> calls;
  std::uint64_t times = 0;
  std::int64_t cost_ns = 0;
};

// True: no other operator of the recording makes such a tensor, or changes one.
bool is_only_read(const TensorMakers& makers, const ConstantInput& found, const Trace& trace,
                  const std::vector<analysis::Window>& steps) {
  const double elements = found.first.tensor.elements(), bytes = found.first.tensor.dense_bytes();
  if (makers.may_be_made_outside(bytes)) return false;
  return std::none_of(makers.operators().begin(), makers.operators().end(), [&](SliceId op) {
    return inside(steps, trace.start_ns(op)) && !found.calls.contains(raw(op)) &&
           makers.may_make(op, elements, bytes);
  });
}

std::optional<ConstantInput> measure_constant_input(const Facts& facts) {
  const Trace& trace = *facts.trace;
  // Two steps or more: what one step makes, the next may take.
  if (facts.selection.steady.size() < 2) return std::nullopt;
  ConstantInput found;
  for (const CallSequence& sequence : call_sequences(facts)) {
    const std::size_t end = end_of_products(trace, sequence);
    for (std::size_t i = 0; i < end; ++i) {
      auto prepared = prepared_from(trace, sequence, i);
      if (!prepared) continue;
      if (found.times > 0 && prepared->tensor.dims != found.first.tensor.dims) continue;
      for (const SliceId call : prepared->calls) found.calls.insert(raw(call));
      if (found.times++ == 0) found.first = *std::move(prepared);
      break;
    }
  }
  if (found.times < facts.selection.steady.size()) return std::nullopt;
  found.cost_ns = cost_of_calls(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastConstantInputShare ||
      !is_only_read(TensorMakers(facts), found, trace, facts.steady_cpu_windows()))
    return std::nullopt;
  return found;
}

Finding tell_constant_input(const Facts& facts, const ConstantInput& found) {
  const Trace& trace = *facts.trace;
  const auto& calls = found.first.calls;
  const SliceId longest = *std::max_element(calls.begin(), calls.end(), [&](SliceId a, SliceId b) {
    return cost_of_calls(facts, {raw(a)}) < cost_of_calls(facts, {raw(b)});
  });
  const Value op = name(trace.name(longest)), product = name(trace.name(found.first.product)),
              shape = text(analysis::shape_text(found.first.tensor.dims));
  Finding finding;
  finding.verdict =
      say(facts,
          "{} prepares {} for {} in each step, and nothing in a step makes or writes its input: {} "
          "[per step] ({}). If the input stays the same, the result does.",
          {op, shape, product, ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(say(
      "counted: operators that take a tensor of this size, or what was computed from it, and no "
      "other tensor, before a product with a smaller one; no other operator of the steps may "
      "have made or written a tensor of this size, by its sizes or its time"));
  finding.evidence.push_back(called_at(facts, longest, say("the longest of them")));
  finding.evidence.push_back(called_at(facts, found.first.product, say("the product")));
  finding.try_next = {
      "compute it once, when the data comes, and keep the result (normalised, cast, scaled)",
      "if memory is too short for both: keep the small part (the norms), and divide the product's "
      "result by it",
      "if other data of the same size comes from outside in each step, this does not apply"};
  for (const char* covered : {"hotspot-kernel", "memory-roof", "no-roof", "unfused-chain",
                              "unfused-norm", "kernel-spread", "costly-operator"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say("{} prepares {} in each step, from a tensor that no operator changes", {op, shape});
  finding.action =
      say("If it is one tensor: compute this once, or divide the result of {} by kept norms",
          {product});
  return finding;
}

}  // namespace

extern constinit const Rule constant_input_rule = {
    .id = "constant-input",
    .question = "is a tensor that stays the same prepared again in each step?",
    .meant_by = "normalize normalise database query constant input once cache embedding search",
    .order = 472,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_constant_input, tell_constant_input>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
