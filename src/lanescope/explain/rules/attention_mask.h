// The mask that a fused attention operator takes as a tensor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lanescope/explain/rules/operator_inputs.h"

namespace lanescope::explain::rules {

// Where the arguments `query` and `attn_mask` are. Nothing: another operator, or FlashAttention, which takes no mask.
struct MaskArguments {
  std::size_t query = 0, mask = 0;
};
inline std::optional<MaskArguments> mask_arguments(std::string_view op) {
  if (op == "aten::scaled_dot_product_attention" ||
      op == "aten::_scaled_dot_product_efficient_attention" ||
      op == "aten::_scaled_dot_product_cudnn_attention" ||
      op == "aten::_scaled_dot_product_fused_attention_overrideable")
    return MaskArguments{0, 3};
  if (op == "aten::_scaled_dot_product_efficient_attention_backward") return MaskArguments{1, 4};
  if (op == "aten::_scaled_dot_product_cudnn_attention_backward") return MaskArguments{1, 8};
  return std::nullopt;
}

// The length of queries and keys, if the call gets a mask of length x length, as a causal mask is; 0: it gets none.
inline std::int64_t masked_length(const Trace& trace, SliceId op) {
  const auto at = mask_arguments(trace.name(op));
  if (!at) return 0;
  const auto inputs = operator_inputs(trace, op);
  const auto query = inputs.tensor(at->query), key = inputs.tensor(at->query + 1),
             mask = inputs.tensor(at->mask);
  if (!query || !key || !mask || query->rank() < 3 || key->rank() < 3 || mask->rank() < 2) return 0;
  const std::int64_t length = query->dim(1);
  return length > 1 && key->dim(1) == length && mask->dim(0) == length && mask->dim(1) == length
             ? length
             : 0;
}

}  // namespace lanescope::explain::rules
