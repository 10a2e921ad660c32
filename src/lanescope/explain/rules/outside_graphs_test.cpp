#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_graphs_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

// The bare step begins at 3000. The GPU waits until 3010 for its first launch, five times from 112
// us after a launch until 160, and from 3862 until the next step: 10 + 5 x 48 + 138 us, over three
// steady steps.
TEST(OutsideGraphsTest, SpeaksOfAStepWithoutReplay) {
  const auto finding = find_by_rule(stepped(3).trace(), "outside-graphs");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
  EXPECT_EQ(finding->verdict.values[1].integer, 3);
  EXPECT_EQ(finding->verdict.values[2].integer, us(388));
  EXPECT_EQ(finding->at_stake_ns, us(388) / 3);
}

// The same step with its launches queued ahead: 1 us apart, for kernels of 160 us each.
TEST(OutsideGraphsTest, SaysNothingOfWaitsWhereThereAreNone) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 1; i <= 4; ++i) {
    const std::int64_t at = i * 1000, launched = 900 + i * 10;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(launched), us(10));
    if (i != 3) sketch.runtime("cudaGraphLaunch", us(launched), us(1), {.correlation = ++id});
    for (int k = 0; k < 6; ++k) {
      if (i == 3)
        sketch.runtime("cudaLaunchKernel", us(launched + k), us(1), {.correlation = ++id});
      sketch.kernel("gemm", us(at) + k * 1'000'000 / 6, 1'000'000 / 6, {.correlation = id});
    }
  }
  const auto finding = find_by_rule(sketch.trace(), "outside-graphs");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 0);
  EXPECT_EQ(finding->verdict.values.size(), 2u);
  EXPECT_THAT(finding->verdict.pattern, ::testing::Not(::testing::HasSubstr("waited")));
}

TEST(OutsideGraphsTest, IsQuietWhenEveryStepReplays) {
  EXPECT_FALSE(find_by_rule(stepped(0).trace(), "outside-graphs"));
}

TEST(OutsideGraphsTest, IsQuietWithoutGraphs) {
  EXPECT_FALSE(find_by_rule(small_steps(false, false).trace(), "outside-graphs"));
}

}  // namespace
}  // namespace lanescope::explain
