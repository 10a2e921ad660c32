#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

TEST(ManyCallsTest, SpeaksOfAnOperatorCalledHundredsOfTimes) {
  const auto finding =
      find_by_rule(loop(3, 300, {.us = 2, .op = "aten::add_"}).trace(), "many-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "aten::add_");
  EXPECT_EQ(finding->verdict.values[1].integer, 300);
}

TEST(ManyCallsTest, IsQuietWhenTheCallsAreHidden) {
  EXPECT_FALSE(find_by_rule(loop(3, 300, {.us = 30, .op = "aten::add_"}).trace(), "many-calls"));
}

}  // namespace
}  // namespace lanescope::explain
