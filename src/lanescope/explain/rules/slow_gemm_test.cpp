#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// 138,897 ns at the peak.
TEST(SlowGemmTest, SpeaksBelowFortyPercent) {
  const auto finding = find_in_steps(
      "slow-gemm", [](ProgramSketch& p) { p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 500); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 500'000 - 138'897);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 275);  // 137.4 G / 0.5 ms
}

TEST(SlowGemmTest, IsQuietAboveItAndWhereMemoryIsTheLimit) {
  EXPECT_FALSE(find_in_steps("slow-gemm", [](ProgramSketch& p) {
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 300);
  }));
  // Eight rows: 1.07 G operations, but 134 MB of weights: 28 us by memory, 1 us by arithmetic.
  EXPECT_FALSE(find_in_steps("slow-gemm", [](ProgramSketch& p) {
    p.op("aten::mm", shapes("[[8, 8192], [8192, 8192]]", kBf16), kNvjet, 200);
  }));
}

// Most matmul time is in compiled code, whose shapes nobody recorded.
TEST(SlowGemmTest, IsNotCheckedWhereMostMatmulsHaveNoShapes) {
  const auto body = [](ProgramSketch& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 100);
    p.op("CompiledFunction", {}, kNvjet, 500);
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 169);
  };
  for (const char* rule : {"slow-gemm", "same-flops", "unaligned-dims", "no-roof", "memory-roof"})
    EXPECT_EQ(state_in_steps(rule, body), RuleRun::State::kNotChecked) << rule;
}

}  // namespace
}  // namespace lanescope::explain
