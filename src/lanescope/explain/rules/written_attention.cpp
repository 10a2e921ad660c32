// Example: `matmul div to add softmax to matmul`. Without recorded shapes, names alone say that the softmax is that of the scores:
// between the products run only operators that work on each score, and views and masks, which do no product.
#include "lanescope/explain/rules/written_attention.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

namespace {

// Operators between a product and the softmax, or between the softmax and the other product.
constexpr std::size_t kMostBeforeSoftmax = 16, kMostAfterSoftmax = 8;

template <std::size_t count>
bool is_in(const std::array<std::string_view, count>& names, std::string_view op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool is_softmax_call(std::string_view op) {
  return op == "aten::softmax" || op == "aten::_softmax" || op == "aten::special_softmax";
}

bool is_mask_use(std::string_view op) {
  constexpr std::array<std::string_view, 6> kMasking = {"aten::add",         "aten::add_",
                                                        "aten::masked_fill", "aten::masked_fill_",
                                                        "aten::where",       "aten::sub"};
  return is_in(kMasking, op);
}

// Work on each score alone. After the softmax only casts and dropout: anything else would use the weights for itself.
bool works_on_scores(std::string_view op, bool is_after) {
  constexpr std::array<std::string_view, 9> kBoth = {
      "aten::to",      "aten::_to_copy", "aten::type_as", "aten::contiguous",    "aten::clone",
      "aten::dropout", "aten::dropout_", "aten::float",   "aten::native_dropout"};
  constexpr std::array<std::string_view, 7> kBefore = {"aten::div",  "aten::div_", "aten::mul",
                                                       "aten::mul_", "aten::tanh", "aten::neg",
                                                       "aten::tanh_"};
  return is_in(kBoth, op) || (!is_after && (is_in(kBefore, op) || is_mask_use(op)));
}

// Makes or turns a mask, or gives another view of a tensor.
bool is_beside_scores(std::string_view op) {
  constexpr std::array<std::string_view, 14> kMakers = {
      "aten::tril",        "aten::triu", "aten::eq",     "aten::ne",          "aten::lt",
      "aten::gt",          "aten::le",   "aten::ge",     "aten::logical_not", "aten::bitwise_not",
      "aten::logical_and", "aten::rsub", "aten::detach", "aten::lift_fresh"};
  return is_view(op) || is_factory(op) || is_in(kMakers, op);
}

bool is_batched_product(const Facts& facts, SliceId op) {
  const std::string_view name = facts.trace->name(op);
  if (name == "aten::bmm" || name == "aten::baddbmm") return true;
  return (name == "aten::matmul" || name == "aten::einsum") &&
         any_inside(facts, op, [](std::string_view inner) { return inner == "aten::bmm"; });
}

bool is_any_product(std::string_view op) {
  return op == "aten::bmm" || op == "aten::baddbmm" || op == "aten::matmul" || op == "aten::einsum";
}

// False only where recorded shapes say otherwise: one softmax of all scores, over the keys, and a product that takes it.
bool shapes_fit(const Trace& trace, SliceId first, SliceId softmax, SliceId second) {
  const auto inputs = operator_inputs(trace, softmax);
  const auto scores = inputs.tensor(0);
  if (!scores) return true;
  if (scores->rank() < 3 || scores->dim(0) < 2 || scores->dim(1) < 2) return false;
  if (const auto dim = inputs.number(1);
      dim && *dim != -1 && *dim != static_cast<double>(scores->rank() - 1))
    return false;
  const auto made = made_size(trace.name(first), operator_inputs(trace, first));
  if (made && analysis::element_count(*made) != scores->elements()) return false;
  if (trace.name(second) == "aten::einsum") return true;
  const auto products = operator_inputs(trace, second);
  const auto left = products.tensor(0), right = products.tensor(1);
  if (!left || !right) return true;
  return left->elements() == scores->elements() || right->elements() == scores->elements();
}

// The calls of one caller, in order. `at`: the softmax.
std::optional<WrittenAttention> attention_at(const Facts& facts, const std::vector<SliceId>& calls,
                                             std::size_t at) {
  const Trace& trace = *facts.trace;
  WrittenAttention found;
  found.softmax = calls[at];
  std::size_t first = at;
  while (true) {
    if (first == 0 || at - first >= kMostBeforeSoftmax) return std::nullopt;
    const std::string_view op = trace.name(calls[--first]);
    if (is_any_product(op)) break;
    if (works_on_scores(op, false))
      found.on_scores.push_back(calls[first]);
    else if (!is_beside_scores(op))
      return std::nullopt;
    found.has_mask = found.has_mask || is_mask_use(op);
  }
  std::reverse(found.on_scores.begin(), found.on_scores.end());
  found.on_scores.push_back(calls[at]);
  std::size_t second = at + 1;
  for (;; ++second) {
    if (second == calls.size() || second - at > kMostAfterSoftmax) return std::nullopt;
    const std::string_view op = trace.name(calls[second]);
    if (is_any_product(op)) break;
    if (works_on_scores(op, true))
      found.on_scores.push_back(calls[second]);
    else if (!is_view(op))
      return std::nullopt;
  }
  if (!is_batched_product(facts, calls[first]) || !is_batched_product(facts, calls[second]) ||
      !shapes_fit(trace, calls[first], calls[at], calls[second]))
    return std::nullopt;
  return found;
}

}  // namespace

std::vector<WrittenAttention> written_attention(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::vector<SliceId> softmaxes = slices_named(facts, is_softmax_call);
  if (softmaxes.empty()) return {};
  const auto windows = facts.steady_cpu_windows();
  // Callers of a softmax: threads (kNone) and operators, such as a checkpoint's.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<SliceId>> callers;
  std::vector<SliceId> caller_of(trace.slices().size(), kNone<SliceId>);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId parent = facts.nesting.parent[i];
    if (parent == kNone<SliceId>) continue;
    const bool is_caller = trace.kind(parent) == CategoryKind::kCpuOp &&
                           !trace.name(parent).starts_with("ProfilerStep");
    caller_of[i] = is_caller ? parent : caller_of[raw(parent)];
  }
  const auto key_of = [&](std::uint32_t slice) {
    return std::pair(raw(trace.slices().track[slice]), raw(caller_of[slice]));
  };
  for (const SliceId id : softmaxes) {
    const SliceId caller = caller_of[raw(id)];
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(windows, trace.start_ns(id))) continue;
    // The fallback of scaled_dot_product_attention is none that the program writes.
    if (caller != kNone<SliceId> && (is_softmax_call(trace.name(caller)) ||
                                     trace.name(caller).starts_with("aten::_scaled_dot")))
      continue;
    callers.try_emplace(key_of(raw(id)));
  }
  if (callers.empty()) return {};
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(windows, trace.start_ns(id)) ||
        trace.name(id).starts_with("ProfilerStep"))
      continue;
    if (const auto caller = callers.find(key_of(i)); caller != callers.end())
      caller->second.push_back(id);
  }
  std::vector<WrittenAttention> all;
  for (const auto& [caller, calls] : callers)
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (is_softmax_call(trace.name(calls[i])))
        if (auto found = attention_at(facts, calls, i)) all.push_back(std::move(*found));
  return all;
}

}  // namespace lanescope::explain::rules
