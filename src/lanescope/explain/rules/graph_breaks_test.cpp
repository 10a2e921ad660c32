#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_compiled_test.h"

namespace lanescope::explain {
namespace {

TEST(GraphBreaksTest, SpeaksOfARegionInsideARegion) {
  const auto finding = find_by_rule(with_break(true).trace(), "graph-breaks");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);  // breaks, in three calls
  EXPECT_EQ(finding->verdict.values[1].integer, 3);
  // 60 us between the graphs, and one of two pieces stays.
  EXPECT_EQ(finding->at_stake_ns, 30'000);
  ASSERT_EQ(finding->evidence.size(), 1u);
  EXPECT_EQ(finding->evidence[0].text.values[2].text, "aten::item");
}

TEST(GraphBreaksTest, IsQuietOnFunctionsCompiledSeparately) {
  EXPECT_FALSE(find_by_rule(with_break(false).trace(), "graph-breaks"));
}

}  // namespace
}  // namespace lanescope::explain
