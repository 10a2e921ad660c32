#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

TEST(LargestOwnersTest, SaysWhatOneCallOverALoopWouldLaunch) {
  const auto finding = find_by_rule(loop(4, 64, {.us = 2}).trace(), "largest-owners");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->at_stake_ns, 0);
  ASSERT_EQ(finding->arithmetic.size(), 2u);
  // 64 kernels a step, one with a single call.
  const auto& values = finding->arithmetic[1].values;
  EXPECT_EQ(values[values.size() - 2].integer, 64);
  EXPECT_EQ(values.back().integer, 1);
}

TEST(LargestOwnersTest, IsQuietWithoutOperatorsOrWork) {
  EXPECT_FALSE(find_by_rule(testing::ProgramSketch().trace(), "largest-owners"));
}

}  // namespace
}  // namespace lanescope::explain
