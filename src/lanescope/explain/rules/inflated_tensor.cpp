// A tensor that is many times as large as what it is made of and as what is kept of it: the work and the memory traffic
// are those of the tensor, not of the result.
//
// Problem: each of the operators is right by itself, and together they have a form that never makes the tensor. Idea:
// follow the tensor by its shape, from the operator that makes it to those that make less of it. Example: sub of
// [4096, 1, 64] and [1, 4096, 64] makes 1.07 G elements, abs keeps them, sum leaves 16.8 M.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
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

using analysis::shape_text;
using analysis::Sizes;
using analysis::TensorArguments;

namespace {

constexpr double kLeastInflatedShare = 0.05;
constexpr double kLeastInflation = 8;  // times its inputs, and times what is kept
constexpr double kLeastInflatedElements = 1 << 20;
constexpr std::size_t kFurthestTaker = 24;      // operators of the program after the last one
constexpr std::size_t kMostInflatedInputs = 4;  // of a call that are looked at

// What happens to one inflated tensor.
struct Inflated {
  SliceId maker{}, taker{};  // the last that makes less of it
  MakerKind made_by = MakerKind::kOther;
  TakerKind taken_by = TakerKind::kNone;
  Sizes size;
  double taken = 0, kept = 0;  // elements of the largest input, and of what is left
  bool only_scaled = true;     // between both nothing but scaling
  bool has_softmax = false;
  bool is_reshaped = false;  // the last taker has it in another shape
  std::vector<SliceId> calls, between;

  // The product itself must stay, and one pass over it. What can go are the operators between, which read and write it
  // again.
  bool needs_maker() const {
    return (made_by == MakerKind::kProduct || made_by == MakerKind::kDistance) &&
           taken_by != TakerKind::kProduct && !(taken_by == TakerKind::kAdds && only_scaled) &&
           taken_by != TakerKind::kSelects;
  }
};

double largest_input(const TensorArguments& inputs) {
  double most = 0;
  for (std::size_t k = 0; k < kMostInflatedInputs; ++k)
    if (const auto tensor = inputs.tensor(k)) most = std::max(most, stored_elements(*tensor));
  return most;
}

std::optional<std::size_t> place_among(const TensorArguments& inputs, const Sizes& size,
                                       bool in_any_shape) {
  for (std::size_t k = 0; k < kMostInflatedInputs; ++k)
    if (const auto tensor = inputs.tensor(k);
        tensor && (tensor->dims == size ||
                   (in_any_shape && tensor->elements() == analysis::element_count(size))))
      return k;
  return std::nullopt;
}

bool is_softmax(std::string_view op) {
  return op == "aten::softmax" || op == "aten::_softmax" || op == "aten::log_softmax";
}

// Nothing: the operator makes no such tensor.
std::optional<Inflated> made_by_call(const Trace& trace, SliceId op) {
  const MakerKind kind = maker_kind(trace.name(op));
  if (kind == MakerKind::kOther) return std::nullopt;
  const TensorArguments inputs = operator_inputs(trace, op);
  auto size = made_size(trace.name(op), inputs);
  if (!size) return std::nullopt;
  const double elements = analysis::element_count(*size), taken = largest_input(inputs);
  if (elements < kLeastInflatedElements || elements < kLeastInflation * taken) return std::nullopt;
  Inflated made;
  made.maker = op;
  made.made_by = kind;
  made.size = *std::move(size);
  made.taken = taken;
  made.calls = {op};
  return made;
}

// Follows it until the same call comes again. Nothing: all of it is used, or what takes it is not known.
std::optional<Inflated> follow_tensor(const Trace& trace, const CallSequence& calls,
                                      std::size_t at) {
  auto found = made_by_call(trace, calls[at]);
  if (!found) return std::nullopt;
  const auto own_dims = trace.slice_args(calls[at]).text(ArgKey::kInputDims);
  const double elements = analysis::element_count(found->size);
  bool in_any_shape = false, is_open = true;
  std::size_t last = at;
  for (std::size_t i = at + 1; i < calls.size() && i - last <= kFurthestTaker; ++i) {
    const std::string_view op = trace.name(calls[i]);
    if (op.starts_with(kEvaluateNode)) break;
    if (op == trace.name(calls[at]) &&
        trace.slice_args(calls[i]).text(ArgKey::kInputDims) == own_dims)
      break;
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    const auto place = place_among(inputs, found->size, in_any_shape);
    if (!place) continue;
    last = i;
    const auto taken = taken_of(op, inputs, *place);
    if (taken && taken->elements * kLeastInflation <= elements) {
      found->kept += taken->elements;
      found->taken_by = taken->kind;
      found->taker = calls[i];
      found->is_reshaped = inputs.tensor(*place)->dims != found->size;
      is_open = false;
    } else if (is_view(op)) {
      in_any_shape = true;  // the same elements
      continue;
    } else if (keeps_size(op)) {
      found->only_scaled = found->only_scaled && only_scales(op, inputs);
      found->has_softmax = found->has_softmax || is_softmax(op);
      found->between.push_back(calls[i]);
      is_open = true;
    } else {
      return std::nullopt;
    }
    found->calls.push_back(calls[i]);
  }
  if (is_open || found->kept * kLeastInflation > elements) return std::nullopt;
  // Each result of a softmax depends on all of its row.
  if (found->has_softmax && found->taken_by == TakerKind::kSelects) return std::nullopt;
  // Products along other dimensions have no other order, and others have no known form.
  if (found->made_by == MakerKind::kProduct && found->taken_by == TakerKind::kProduct &&
      !found->has_softmax && (found->is_reshaped || !found->only_scaled))
    return std::nullopt;
  if (found->needs_maker()) found->calls = found->between;
  if (found->calls.empty()) return std::nullopt;
  return found;
}

// Tensors that one operator makes and one advice fits. Each such group is a cause of its own.
struct InflatedTensors {
  Inflated largest;  // that with most elements
  std::uint64_t made = 0;
  std::unordered_set<std::uint32_t> calls;
  std::int64_t cost_ns = 0;
};

// A form that gives the same, or nearly, and never makes the tensor.
const char* inflated_action(const Trace& trace, const Inflated& tensor) {
  const std::string_view maker = trace.name(tensor.maker), taker = trace.name(tensor.taker);
  if (tensor.made_by == MakerKind::kProduct || tensor.made_by == MakerKind::kOuter) {
    if (tensor.taken_by == TakerKind::kProduct && tensor.has_softmax)
      return "Use scaled_dot_product_attention: it never stores the scores";
    if (tensor.taken_by == TakerKind::kProduct && tensor.only_scaled)
      return "Multiply the smaller ones first: A @ (B @ C) is (A @ B) @ C, without the large one";
    if (tensor.taken_by == TakerKind::kAdds && tensor.only_scaled)
      return "Add up before the product: (A @ B).sum(-1) is A @ B.sum(-1)";
    if (tensor.taken_by == TakerKind::kSelects)
      return "Select first, then multiply only what is kept";
    return "torch.compile what follows the product: one pass over it; or go through blocks of rows";
  }
  if (tensor.made_by == MakerKind::kDistance)
    return tensor.taken_by == TakerKind::kProduct || tensor.taken_by == TakerKind::kAdds
               ? "Go through blocks of rows that fit the cache: each pair counts, none is stored"
               : "Go through blocks of rows that fit the cache, or search an index for neighbours";
  if (tensor.made_by == MakerKind::kCompare &&
      (tensor.taken_by == TakerKind::kAdds || taker == "aten::any"))
    return taker == "aten::any"
               ? "To look values up: torch.isin, which sorts instead of comparing all"
               : "To count: torch.bincount, or sort one side and searchsorted";
  if ((maker == "aten::sub" || maker == "aten::rsub") && tensor.taken_by != TakerKind::kSelects)
    return "For distances: torch.cdist; else torch.compile these lines: it never stores them";
  if (tensor.made_by == MakerKind::kOneHot)
    return "Use the indices: torch.bincount to count, index_add_ to add up, F.embedding to look up";
  if (tensor.made_by == MakerKind::kRepeat)
    return "Use expand() or broadcasting instead of copies, or reduce before repeating";
  if (tensor.taken_by == TakerKind::kSelects) return "Select first, then compute only what is kept";
  return "torch.compile these lines: it reduces while it computes, and never stores them";
}

using InflatedGroups = std::map<std::pair<std::string_view, std::string_view>, InflatedTensors>;

InflatedGroups group_inflated(const Facts& facts) {
  const Trace& trace = *facts.trace;
  InflatedGroups groups;
  std::unordered_set<std::uint32_t> seen;
  for (const CallSequence& sequence : call_sequences(facts))
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      if (seen.contains(raw(sequence[i]))) continue;
      auto tensor = follow_tensor(trace, sequence, i);
      if (!tensor) continue;
      InflatedTensors& group = groups[{trace.name(tensor->maker), inflated_action(trace, *tensor)}];
      ++group.made;
      for (const SliceId call : tensor->calls) {
        seen.insert(raw(call));
        group.calls.insert(raw(call));
      }
      if (group.made == 1 ||
          analysis::element_count(tensor->size) > analysis::element_count(group.largest.size))
        group.largest = *std::move(tensor);
    }
  return groups;
}

// The group that costs most, by its own calls.
std::optional<InflatedTensors> measure_inflated_tensor(const Facts& facts) {
  InflatedTensors most;
  for (auto& [cause, group] : group_inflated(facts)) {
    group.cost_ns = cost_of_calls(facts, with_backward_nodes(facts, group.calls));
    if (group.cost_ns > most.cost_ns) most = std::move(group);
  }
  if (share_of(most.cost_ns, facts.steady_wall_ns()) < kLeastInflatedShare) return std::nullopt;
  return most;
}

Value millions(double elements) { return count(static_cast<std::uint64_t>(elements)); }

Finding tell_inflated_tensor(const Facts& facts, const InflatedTensors& found) {
  const Trace& trace = *facts.trace;
  const Inflated& tensor = found.largest;
  const double elements = analysis::element_count(tensor.size);
  const std::uint64_t made = std::max<std::uint64_t>(1, found.made / step_count(facts));
  Finding finding;
  finding.verdict = say(
      facts,
      "{} makes {} elements, {}, out of {}, and {} leaves {} of them; {} such [tensor|tensors] "
      "[per step], whose calls take {} [per step] ({}).",
      {name(trace.name(tensor.maker)), millions(elements), text(shape_text(tensor.size)),
       millions(tensor.taken), name(trace.name(tensor.taker)), millions(tensor.kept), count(made),
       ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      say("counted: calls that make a tensor of at least 8 times the elements of their largest "
          "input, and 1,048,576 or more, of which the calls after them keep an eighth or less; by "
          "shapes, on the same thread; with their backward parts. A product that must stay is left "
          "out, and the calls that keep little of it"));
  finding.arithmetic.push_back(
      say("at stake is the time of all these calls; what replaces them takes some of it itself"));
  finding.evidence.push_back(called_at(facts, tensor.maker, say("the call that makes it")));
  finding.evidence.push_back(called_at(facts, tensor.taker, say("the call that leaves little")));
  finding.try_next = {
      inflated_action(trace, tensor),
      "if memory is short: work block by block, so that only a part exists at a time"};
  for (const char* covered : {"hotspot-kernel", "memory-roof", "no-roof", "unfused-chain"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("{} makes {} elements out of {}, and {} leaves {} of them",
                      {name(trace.name(tensor.maker)), millions(elements), millions(tensor.taken),
                       name(trace.name(tensor.taker)), millions(tensor.kept)});
  finding.action = say(inflated_action(trace, tensor));
  return finding;
}

}  // namespace

extern constinit const Rule inflated_tensor_rule = {
    .id = "inflated-tensor",
    .question = "is a tensor much larger than what it is made of and what is kept of it?",
    .meant_by = "intermediate temporary broadcast large memory traffic",
    .order = 491,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_inflated_tensor, tell_inflated_tensor>,
};

}  // namespace lanescope::explain::rules
