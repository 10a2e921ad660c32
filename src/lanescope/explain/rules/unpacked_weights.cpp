// Weights that are packed into few bits are unpacked again in each step, by operators of the program: shift, mask, a table, a scale.
//
// Idea: a shift and a mask of bits, then only operators that move or scale numbers, then a linear layer, several times a step. What is
// shifted are whole numbers, which have no gradient: such weights are frozen, and the result is the same in each step.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kLeastUnpackedShare = 0.05;
constexpr std::uint64_t kFewestUnpacked = 4;   // in each step
constexpr std::size_t kLongestUnpacking = 24;  // calls

bool is_shift_of_bits(std::string_view op) {
  return op == "aten::__rshift__" || op == "aten::bitwise_right_shift";
}

bool is_mask_of_bits(std::string_view op) {
  return op == "aten::__and__" || op == "aten::bitwise_and";
}

// Moves, joins or scales numbers.
bool may_unpack(std::string_view op) {
  static constexpr std::array<std::string_view, 20> kUnpacking = {
      "aten::stack",   "aten::cat",        "aten::to",        "aten::index",
      "aten::mul",     "aten::sub",        "aten::add",       "aten::div",
      "aten::reshape", "aten::contiguous", "aten::clone",     "aten::index_select",
      "aten::gather",  "aten::take",       "aten::embedding", "aten::_to_copy",
      "aten::flatten", "aten::bitwise_or", "aten::mul_",      "aten::sub_"};
  return is_view(op) || is_shift_of_bits(op) || is_mask_of_bits(op) ||
         std::find(kUnpacking.begin(), kUnpacking.end(), op) != kUnpacking.end();
}

struct Unpacking {
  std::size_t first = 0, end = 0;  // calls [first, end); calls[end] is the linear layer
};

// The unpacking that begins with calls[first]; nothing: it leads to no linear layer, or it lacks the shift, the mask or the scale.
std::optional<Unpacking> unpacking_at(const Trace& trace, const CallSequence& calls,
                                      std::size_t first) {
  bool shifts = false, masks = false, scales = false;
  for (std::size_t i = first; i < calls.size() && i < first + kLongestUnpacking; ++i) {
    const std::string_view op = trace.name(calls[i]);
    if (op == "aten::linear" || op == "aten::addmm" || op == "aten::mm")
      return shifts && masks && scales ? std::optional(Unpacking{first, i}) : std::nullopt;
    if (!may_unpack(op)) return std::nullopt;
    shifts = shifts || is_shift_of_bits(op);
    masks = masks || is_mask_of_bits(op);
    scales = scales || op.starts_with("aten::mul");
  }
  return std::nullopt;
}

struct UnpackedWeights {
  std::vector<SliceId> calls;
  std::uint64_t a_step = 0;
  Unpacking first;
  SliceId first_call = kNone<SliceId>, last_call = kNone<SliceId>;  // of one unpacking
  std::int64_t cost_ns = 0;
};

std::optional<UnpackedWeights> measure_unpacked_weights(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::uint64_t steps = facts.selection.steady.size();
  if (!facts.steps.marked || steps < 2) return std::nullopt;
  UnpackedWeights found;
  std::vector<std::uint64_t> in_step(facts.steps.steps.size(), 0);
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::string_view op = trace.name(calls[i]);
      if (!is_shift_of_bits(op) && !is_mask_of_bits(op)) continue;
      const auto unpacking = unpacking_at(trace, calls, i);
      if (!unpacking) continue;
      if (found.calls.empty()) {
        found.first = *unpacking;
        found.first_call = calls[i];
        found.last_call = calls[unpacking->end - 1];
      }
      found.calls.insert(found.calls.end(), calls.begin() + static_cast<std::ptrdiff_t>(i),
                         calls.begin() + static_cast<std::ptrdiff_t>(unpacking->end));
      const std::size_t step = steady_step_at(facts, trace.start_ns(calls[i]));
      if (step < in_step.size()) ++in_step[step];
      i = unpacking->end;
    }
  // The same number in each step.
  for (const std::size_t step : facts.selection.steady) {
    if (found.a_step == 0) found.a_step = in_step[step];
    if (in_step[step] != found.a_step) return std::nullopt;
  }
  if (found.a_step < kFewestUnpacked) return std::nullopt;
  found.cost_ns = cost_of_spared(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastUnpackedShare) return std::nullopt;
  return found;
}

Finding tell_unpacked_weights(const Facts& facts, const UnpackedWeights& found) {
  const Trace& trace = *facts.trace;
  const Value times = count(found.a_step);
  Finding finding;
  finding.verdict =
      say(facts,
          "Packed weights are unpacked {} times [per step], by {} calls from {} to {}: "
          "{} [per step] ({}). Frozen weights give the same result each time.",
          {times, count(found.first.end - found.first.first), name(trace.name(found.first_call)),
           name(trace.name(found.last_call)), ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.spared_calls = found.calls;
  finding.arithmetic.push_back(
      say("counted: calls in a row with a shift and a mask of bits, which then only move or scale "
          "numbers, up to a linear layer; as many in each step"));
  finding.arithmetic.push_back(say(
      "whole numbers have no gradient, so training does not change what is shifted; a trace does "
      "not show the tensors themselves"));
  finding.evidence.push_back(called_at(facts, found.first_call, say("the first of these calls")));
  finding.try_next = {
      "if memory allows, unpack once and keep the result in bfloat16: 16 bits for each weight "
      "instead of 4",
      "if it does not: a linear layer that takes packed weights (torchao, bitsandbytes), or "
      "torch.compile of the function that unpacks, which makes one kernel of it"};
  finding.brief =
      say(facts, "Packed weights are unpacked again, {} times [per step]: {} to {}",
          {times, name(trace.name(found.first_call)), name(trace.name(found.last_call))});
  finding.action =
      say("Keep them unpacked in bfloat16 (4 times the memory of 4 bits), or use a packed kernel");
  return finding;
}

}  // namespace

extern constinit const Rule unpacked_weights_rule = {
    .id = "unpacked-weights",
    .question = "are packed weights unpacked again in each step?",
    .meant_by = "quantized nf4 int4 dequantize weights frozen again",
    .order = 479,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_unpacked_weights, tell_unpacked_weights>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules
