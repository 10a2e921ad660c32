#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

// 40 launches a step of 10 us each against 100 us of work: 16 ms late after five steps.
TEST(CpuAheadTest, SpeaksWhenTheQueueGrows) {
  const auto finding = find_by_rule(loop(5, 40, {.us = 100}).trace(), "cpu-ahead");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_GT(finding->verdict.values[1].integer, 10'000'000);
}

TEST(CpuAheadTest, IsQuietWhenTheGpuKeepsUpAndWhenWorkWaitsOnAnIdleGpu) {
  EXPECT_FALSE(find_by_rule(loop(5, 40, {.us = 5}).trace(), "cpu-ahead"));
  Sketch sketch;  // all launched at once, then run with pauses of 40 us
  for (int i = 0; i < 100; ++i) {
    sketch.runtime("cudaLaunchKernel", i * 5'000, 4'000, {.correlation = i + 1});
    sketch.kernel("gemm", 1'000'000 + i * 100'000, 60'000, {.correlation = i + 1});
  }
  EXPECT_FALSE(find_by_rule(sketch.trace(), "cpu-ahead"));
}

}  // namespace
}  // namespace lanescope::explain
