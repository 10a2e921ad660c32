#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

ProgramSketch allocating(int first, int later, const char* around = nullptr) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    if (around) program.begin(around);
    for (int k = 0; k < (i == 0 ? first : later); ++k) program.call("cudaMalloc", 100);
    if (around) program.end();
    program.launch({.us = 50}).end();
  }
  return program;
}

TEST(FirstAllocationsTest, SpeaksWhenOnlyTheFirstStepAllocates) {
  const auto finding = find_by_rule(allocating(5, 0).trace(), "first-allocations");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 5);
  EXPECT_EQ(finding->verdict.values[1].integer, us(500));
  EXPECT_EQ(finding->verdict.values[3].text, "0 times");
  EXPECT_EQ(finding->at_stake_ns, us(500));
}

TEST(FirstAllocationsTest, LeavesBuffersOfAFirstCollectiveAlone) {
  EXPECT_TRUE(find_by_rule(allocating(5, 0, "forward").trace(), "first-allocations"));
  EXPECT_FALSE(find_by_rule(allocating(5, 0, "nccl:all_reduce").trace(), "first-allocations"));
}

TEST(FirstAllocationsTest, IsQuietWhenItGoesOn) {
  EXPECT_FALSE(find_by_rule(allocating(5, 5).trace(), "first-allocations"));
  EXPECT_FALSE(find_by_rule(allocating(1, 0).trace(), "first-allocations"));
}

TEST(FirstAllocationsTest, KnowsTheDriversCalls) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 5 && i == 0; ++k) program.call("cuMemAlloc_v2", 100);
    program.launch({.us = 50}).end();
  }
  const auto finding = find_by_rule(program.trace(), "first-allocations");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 5);
}

}  // namespace
}  // namespace lanescope::explain
