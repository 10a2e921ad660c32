#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_graphs_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

TEST(CollapsedGraphTest, BorrowsTheOperatorsOfAnEagerStep) {
  const auto finding = find_by_rule(stepped(3).trace(), "collapsed-graph");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kTrust);
  EXPECT_EQ(finding->verdict.values[0].integer, 18);
  EXPECT_EQ(finding->verdict.values[1].integer, 24);
  EXPECT_DOUBLE_EQ(finding->arithmetic[0].values[0].real, 1.0);
  EXPECT_EQ(finding->evidence[0].text.values[3].text, "aten::mm");
}

TEST(CollapsedGraphTest, SaysSoWhenThereIsNoOperatorToBorrow) {
  const auto finding = find_by_rule(replays(1000).trace(), "collapsed-graph");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->arithmetic[0].pattern, ::testing::StartsWith("no operator"));
}

TEST(CollapsedGraphTest, IsQuietWhenFewKernelsAreReplayed) {
  Sketch sketch = replays(1000, 1);
  for (int i = 0; i < 20; ++i) {
    sketch.runtime("cudaLaunchKernel", us(2000 + i * 20), us(5), {.correlation = 100 + i});
    sketch.kernel("gemm", us(2010 + i * 20), us(10), {.correlation = 100 + i});
  }
  EXPECT_FALSE(find_by_rule(sketch.trace(), "collapsed-graph"));
}

}  // namespace
}  // namespace lanescope::explain
