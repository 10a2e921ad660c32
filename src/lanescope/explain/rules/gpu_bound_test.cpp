#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using Work = testing::ProgramSketch::Work;

TEST(GpuBoundTest, SpeaksWhenTheQueueIsFull) {
  EXPECT_TRUE(find_by_rule(loop(4, 10, {.us = 50}).trace(), "gpu-bound"));
}

TEST(GpuBoundTest, AdvisesNoTypeOrFusionThatIsInUse) {
  const auto advice = [](std::string_view kernel, const char* op, const char* types) {
    const auto finding = find_in_steps("gpu-bound", [&](testing::ProgramSketch& p) {
      p.op(op, shapes(kSquare, types), kernel, 300);
    });
    EXPECT_TRUE(finding);
    return finding ? finding->action.values.at(0).text : std::string();
  };
  EXPECT_EQ(advice(kNvjet, "aten::mm", kBf16), "faster implementations, smaller shapes");
  EXPECT_EQ(advice("add_kernel", "aten::add", kFloat),
            "lower precision, fusion, faster implementations, smaller shapes");
  EXPECT_EQ(advice("triton_poi_fused_add_mul_0", "aten::add", kBf16),
            "faster implementations, smaller shapes");
}

// The first kernel runs at 6 us, the next, launched at 10 us, from 500 ms on: 1006 us of work and
// 493.9 ms in which something ran that was not recorded.
TEST(GpuBoundTest, SaysHowLongAGapIsThatItDoesNotCount) {
  testing::Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    sketch.runtime("cudaLaunchKernel", us(i * 10), us(4), {.correlation = i + 1});
    sketch.kernel("gemm", i == 0 ? us(6) : us(500'000 + i * 100), us(100), {.correlation = i + 1});
  }
  const auto finding = find_by_rule(sketch.trace(), "gpu-bound");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::HasSubstr("a gap of {} at the start"));
  // From the end of the first kernel to the start of the second.
  EXPECT_EQ(finding->verdict.values.at(3).integer, us(500'100 - 106));
}

TEST(GpuBoundTest, IsQuietWhenCopiesFillTheGpu) {
  const Work copy{.name = "Memcpy DtoD", .us = 50, .category = "gpu_memcpy"};
  EXPECT_FALSE(find_by_rule(loop(4, 10, copy).trace(), "gpu-bound"));
}

}  // namespace
}  // namespace lanescope::explain
