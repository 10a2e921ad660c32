#include <gtest/gtest.h>

#include <cstdint>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// A step: `copies` of `size_bytes` to the GPU by aten::to, 1 us of Python after each, then a kernel
// of 50 us. The GPU is idle when a step begins, because the one before it ends with a wait.
ProgramSketch drawn_copies(int copies, std::int64_t size_bytes, bool kernel_between = false) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step();
    for (int i = 0; i < copies; ++i) {
      program.begin_op("aten::to");
      program.copy(1, size_bytes, "Memcpy HtoD (Pageable -> Device)").pass(7).end();
      if (kernel_between) program.kernel("gemm", 1);
    }
    program.launch({.us = 50}).wait().end();
  }
  return program;
}

// An operator of 10 us: its copy begins 3 us after it and ends 4 us after it. From the first operator to
// the kernel, which begins 9 us after the last operator's end: 10 * 10 + 9 = 109 us, of which the
// GPU computes none. One copy keeps a tenth: 109 - 10.9 = 98.1 us go.
TEST(SmallCopiesTest, CountsFromTheFirstCopyToTheNextWork) {
  const auto finding = find_by_rule(drawn_copies(10, 1024).trace(), "small-copies");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 10);  // a step
  EXPECT_EQ(finding->verdict.values.at(1).integer, 1024);
  EXPECT_EQ(finding->verdict.values.at(3).integer, us(109));
  EXPECT_EQ(finding->at_stake_ns, 98'100);
}

TEST(SmallCopiesTest, IsQuietAboutOneLargeCopy) {
  EXPECT_FALSE(find_by_rule(drawn_copies(1, 1'000'000).trace(), "small-copies"));
  EXPECT_FALSE(find_by_rule(drawn_copies(10, 1'000'000).trace(), "small-copies"));
}

TEST(SmallCopiesTest, IsQuietBelowEightAndWhenKernelsRunBetween) {
  EXPECT_TRUE(find_by_rule(drawn_copies(8, 1024).trace(), "small-copies"));
  EXPECT_FALSE(find_by_rule(drawn_copies(7, 1024).trace(), "small-copies"));
  EXPECT_FALSE(find_by_rule(drawn_copies(10, 1024, true).trace(), "small-copies"));
}

}  // namespace
}  // namespace lanescope::explain
