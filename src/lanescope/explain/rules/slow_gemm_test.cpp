#include <gtest/gtest.h>

#include <string>

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

// 137.4 GFLOP each: of 4,096 rows; of 1,024 rows of four samples. The same as the gradient of a weight.
TEST(SlowGemmTest, AdvisesALargerBatchForFewRowsOnly) {
  const auto action = [](const char* dims, const char* strides, bool is_gradient = false) {
    const auto finding = find_in_steps("slow-gemm", [&](ProgramSketch& p) {
      testing::Fields product = shapes(dims, kBf16);
      product.input_strides = strides;
      if (is_gradient) p.begin_op("autograd::engine::evaluate_function: MmBackward0", {});
      p.op("aten::mm", product, kNvjet, 500);
      if (is_gradient) p.end();
    });
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_EQ(action("[[4096, 4096], [4096, 4096]]", "[[4096, 1], [4096, 1]]").find("larger batch"),
            std::string::npos);
  constexpr char kFewRows[] = "[[1024, 4096], [4096, 16384]]";
  EXPECT_NE(action(kFewRows, "[[4096, 1], [16384, 1]]").find("larger batch"), std::string::npos);
  EXPECT_NE(action(kFewRows, "[[4096, 1], [16384, 1]]", true).find("larger batch"),
            std::string::npos);
  EXPECT_EQ(action(kFewRows, "[[1, 1024], [16384, 1]]", true).find("larger batch"),
            std::string::npos);
}

// The batch is what is wrong: products of one row each.
TEST(SlowGemmTest, DoesNotAdviseALargerBatchOfSingleRows) {
  const auto action = [](const char* dims, const char* strides) {
    const auto finding = find_in_steps("slow-gemm", [&](ProgramSketch& p) {
      testing::Fields product = shapes(dims, kBf16);
      product.input_strides = strides;
      p.op("aten::bmm", product, kNvjet, 500);
    });
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_EQ(action("[[4096, 1, 2048], [4096, 2048, 2048]]", "[[2048, 2048, 1], [0, 2048, 1]]")
                .find("batch"),
            std::string::npos);
  EXPECT_NE(action("[[8, 256, 8192], [8, 8192, 2048]]", "[[2097152, 8192, 1], [16777216, 2048, 1]]")
                .find("larger batch"),
            std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain
