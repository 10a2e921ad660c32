// The weight of a layer is computed again before each call, in a program that only runs forward: dequantised, merged,
// masked, scaled.
//
// Problem: each of these operators is usual. Idea: a weight can be recognised by its slot, input 1 of a linear layer or a
// convolution. If the operators right before the layer make a tensor of its size, they make the weight; without a
// backward pass weights do not change. Example: to and mul of [4096, 4096], and linear of 8 rows with it.
#include <algorithm>
#include <array>
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

using analysis::shape_text;
using analysis::Sizes;
using analysis::TensorArguments;

namespace {

constexpr double kLeastRemadeWeightShare = 0.05;
constexpr double kLeastWeightElements = 1 << 16;

bool takes_a_weight(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kWithWeight = {
      "aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution"};
  return std::find(kWithWeight.begin(), kWithWeight.end(), op) != kWithWeight.end();
}

// The operators right before a layer that make a tensor of its weight's size, last first. Empty: none.
std::vector<SliceId> makers_of_weight(const Trace& trace, const CallSequence& calls,
                                      std::size_t at) {
  const TensorArguments layer = operator_inputs(trace, calls[at]);
  const auto input = layer.tensor(0), weight = layer.tensor(1);
  std::vector<SliceId> makers;
  if (!input || !weight || weight->elements() < kLeastWeightElements ||
      input->dims == weight->dims || weight->elements() < input->elements())
    return makers;
  for (std::size_t i = at; i-- > 0;) {
    const std::string_view op = trace.name(calls[i]);
    if (is_view(op)) continue;
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    const auto made = works_on_each_element(op) || maker_kind(op) == MakerKind::kProduct
                          ? made_size(op, inputs)
                          : std::nullopt;
    const auto first = inputs.tensor(0);
    const double elements = made                                 ? analysis::element_count(*made)
                            : first && works_on_each_element(op) ? first->elements()
                                                                 : 0;
    // Scales of blocks are multiplied in another shape of as many elements.
    if (elements != weight->elements()) break;
    makers.push_back(calls[i]);
  }
  return makers;
}

struct RemadeWeight {
  std::unordered_set<std::uint32_t> calls;
  std::uint64_t layers = 0;
  SliceId layer = kNone<SliceId>, maker = kNone<SliceId>;  // with the largest weight
  double elements = 0;
  Sizes weight;
  std::uint64_t operators = 0;
  std::int64_t cost_ns = 0;
};

bool goes_backward(const Trace& trace, const CallSequence& calls) {
  return std::any_of(calls.begin(), calls.end(),
                     [&](SliceId op) { return trace.name(op).starts_with(kEvaluateNode); });
}

std::optional<RemadeWeight> measure_remade_weight(const Facts& facts) {
  const Trace& trace = *facts.trace;
  RemadeWeight found;
  const std::vector<CallSequence>& sequences = call_sequences(facts);
  for (const CallSequence& sequence : sequences)
    if (goes_backward(trace, sequence)) return std::nullopt;
  for (const CallSequence& sequence : sequences)
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      if (!takes_a_weight(trace.name(sequence[i]))) continue;
      const std::vector<SliceId> makers = makers_of_weight(trace, sequence, i);
      if (makers.empty()) continue;
      ++found.layers;
      for (const SliceId maker : makers) found.calls.insert(raw(maker));
      const auto weight = operator_inputs(trace, sequence[i]).tensor(1);
      if (weight->elements() <= found.elements) continue;
      found.elements = weight->elements();
      found.weight = weight->dims;
      found.layer = sequence[i];
      found.maker = makers.front();
      found.operators = makers.size();
    }
  if (found.layers < step_count(facts) || found.calls.empty()) return std::nullopt;
  found.cost_ns = cost_of_calls(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastRemadeWeightShare)
    return std::nullopt;
  return found;
}

Finding tell_remade_weight(const Facts& facts, const RemadeWeight& found) {
  const Trace& trace = *facts.trace;
  const std::uint64_t layers = found.layers / step_count(facts);
  const Value weight = text(shape_text(found.weight)), op = name(trace.name(found.layer)),
              maker = name(trace.name(found.maker));
  Finding finding;
  finding.verdict =
      say(facts,
          "{} [layer|layers] [per step] {} a weight that is computed again before each use (up to "
          "{}, last by {}): {} [per step] ({}).",
          {count(layers), text(layers == 1 ? "takes" : "take"), weight, maker,
           ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      say("counted: elementwise operators and products right before aten::linear or a convolution, "
          "whose result has as many elements as the layer's weight and more than its input; no "
          "backward pass was recorded, so weights do not change"));
  finding.evidence.push_back(called_at(facts, found.maker, say("the operator that makes it last")));
  finding.evidence.push_back(called_at(facts, found.layer, say("the layer")));
  finding.try_next = {
      "make the weight once, after loading, and keep it: merged (LoRA), masked, scaled, in its "
      "type",
      "where memory is too short for that (quantised weights): a layer that multiplies the "
      "compressed weight itself, such as torchao's; torch.compile fuses what makes the weight"};
  for (const char* covered :
       {"hotspot-kernel", "memory-roof", "no-roof", "unfused-chain", "dtype-casts"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say(facts, "{} computes the weight {} of {} again in each call, {} [time|times] [per step]",
          {maker, weight, op, count(layers)});
  finding.action = say(
      "Make it once, after loading; if memory is too short for that, let torch.compile fuse what "
      "makes it");
  return finding;
}

}  // namespace

extern constinit const Rule remade_weight_rule = {
    .id = "remade-weight",
    .question = "are weights computed again before each layer?",
    .meant_by = "dequantize quantised lora merge mask weight inference",
    .order = 464,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_remade_weight, tell_remade_weight>,
};

}  // namespace lanescope::explain::rules
