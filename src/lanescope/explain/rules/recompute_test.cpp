#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

// Backward runs mm with a sequence number of its own, which is forward work; or without one.
Sketch checkpointed(bool again) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = i * 1000;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(at), us(1000));
    sketch.op("aten::mm", us(at), us(12),
              {.sequence = i * 10, .fwd_thread = 0, .input_dims = "[[8, 8], [8, 8]]"});
    sketch.runtime("cudaLaunchKernel", us(at + 5), us(5), {.correlation = ++id});
    sketch.kernel("gemm", us(at + 12), us(300), {.correlation = id});
    sketch.op("autograd::engine::evaluate_function: CheckpointFunctionBackward", us(at + 100),
              us(40), {.tid = 200, .sequence = i * 10, .fwd_thread = 1});
    testing::Fields inner{.tid = 200, .input_dims = "[[8, 8], [8, 8]]"};
    if (again) {
      inner.sequence = i * 10 + 5;
      inner.fwd_thread = 0;
    }
    sketch.op("aten::mm", us(at + 105), us(20), inner);
    sketch.runtime("cudaLaunchKernel", us(at + 110), us(5), {.tid = 200, .correlation = ++id});
    sketch.kernel("gemm", us(at + 312), us(200), {.correlation = id});
  }
  return sketch;
}

TEST(RecomputeTest, SpeaksOfForwardWorkInTheBackwardPass) {
  const auto finding = find_by_rule(checkpointed(true).trace(), "recompute");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(200));
  EXPECT_EQ(finding->sample_count, 3u);
}

TEST(RecomputeTest, IsQuietOnTheBackwardPassesOwnMatmuls) {
  EXPECT_FALSE(find_by_rule(checkpointed(false).trace(), "recompute"));
}

}  // namespace
}  // namespace lanescope::explain
