#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_compiled_test.h"

namespace lanescope::explain {
namespace {

// 3 ms in one of three steady steps; the launch before it still runs for 9 us of them.
TEST(RecompilesTest, SpeaksOfCompilingInASteadyStep) {
  const auto finding = find_by_rule(compiling_in(3).trace(), "recompiles");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
  EXPECT_EQ(finding->verdict.values[2].integer, 1'000'000);
  EXPECT_EQ(finding->at_stake_ns, 997'000);
  EXPECT_EQ(finding->evidence[0].text.values[0].text, "2/1");
  EXPECT_FALSE(find_by_rule(compiling_in(3).trace(), "cold-compile"));
}

TEST(RecompilesTest, AreQuietWithoutCompiling) {
  EXPECT_FALSE(find_by_rule(compiling_in(0).trace(), "recompiles"));
  EXPECT_FALSE(find_by_rule(compiling_in(0).trace(), "cold-compile"));
}

}  // namespace
}  // namespace lanescope::explain
