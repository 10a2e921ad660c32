// How fast torch's attention was measured to be: data, from which slow-attention takes the time that a call needs at least.
#pragma once
#include <cstdint>
#include <span>

namespace lanescope::explain::rules {

// One measurement: bfloat16, torch 2.11, an H200; the faster of cuDNN's and FlashAttention's kernels.
// docs/rules/slow-attention.md#rates
struct AttentionRate {
  std::int64_t head_size;
  bool is_causal;
  std::int64_t length;             // of queries and keys
  std::int64_t positions;          // length x heads x samples
  std::int64_t forward, backward;  // TFLOP/s
};
std::span<const AttentionRate> attention_rates();

inline constexpr double kPeakOfRates = 989.5;  // TFLOP/s of that GPU in bfloat16

// The row for a call: of the longest length, and then of the most positions, that the call is not below. A call of fewer positions
// than any row gets the row of the fewest, and `is_above` is true: such a call is slower than the row, because it fills the GPU less.
// `row` is null if no row has this head size and mask, or if the call is shorter than all of them.
struct FoundRate {
  const AttentionRate* row = nullptr;
  bool is_above = false;
};
FoundRate find_attention_rate(std::int64_t head_size, bool is_causal, std::int64_t length,
                              std::int64_t positions);

}  // namespace lanescope::explain::rules
