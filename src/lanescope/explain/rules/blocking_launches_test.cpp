#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

// Ten launches a step. Each kernel begins 3 us after its call and takes 50 us; then the CPU needs 10 us.
Trace launches(std::int64_t call_us) {
  testing::Sketch sketch;
  std::int64_t at = us(1000), correlation = 0;
  for (int step = 0; step < 4; ++step) {
    const std::int64_t begin = at;
    for (int i = 0; i < 10; ++i) {
      sketch.runtime("cudaLaunchKernel", at, us(call_us), {.correlation = ++correlation});
      sketch.kernel("k", at + us(3), us(50), {.correlation = correlation});
      at += us(70);
    }
    sketch.annotation("ProfilerStep#" + std::to_string(step + 1), begin, at - begin);
  }
  return sketch.trace();
}

TEST(BlockingLaunchesTest, SeesCallsThatReturnAfterTheirKernel) {
  const auto finding = find_by_rule(launches(60), "blocking-launches");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 30);  // of three steady steps
  EXPECT_EQ(finding->verdict.values[1].integer, 30);
  const auto& arithmetic = finding->arithmetic.at(0).values;
  EXPECT_EQ(arithmetic[0].integer, us(500));
  EXPECT_EQ(finding->at_stake_ns, std::min(arithmetic[0].integer, arithmetic[1].integer));
}

// What launches cost is unknown then: no graph, no compiler, no other advice about launches.
TEST(BlockingLaunchesTest, NothingElseIsAdvisedAboutLaunches) {
  const Trace trace = launches(60);
  EXPECT_FALSE(find_by_rule(trace, "graph-opportunity"));
  if (const auto bound = find_by_rule(trace, "host-bound")) {
    EXPECT_TRUE(bound->action.pattern.starts_with("Unset CUDA_LAUNCH_BLOCKING"));
  }
}

TEST(BlockingLaunchesTest, IsQuietAboutUsualLaunches) {
  EXPECT_FALSE(find_by_rule(launches(4), "blocking-launches"));
  EXPECT_FALSE(find_by_rule(launches(30), "blocking-launches"));  // slow, and no wait
}

}  // namespace
}  // namespace lanescope::explain
