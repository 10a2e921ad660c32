#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::Sketch;

// 40 launches; of those from the 10th on, `lost` have no kernel.
Sketch& with_lost(Sketch& sketch, int lost, bool at_end) {
  for (int i = 0; i < 40; ++i) {
    const std::int64_t at = i * 100'000;
    sketch.runtime("cudaLaunchKernel", at, 4'000, {.correlation = i + 1});
    const bool is_lost = at_end ? i >= 40 - lost : i >= 10 && i < 10 + lost;
    if (!is_lost) sketch.kernel("gemm", at + 6'000, 10'000, {.correlation = i + 1});
  }
  return sketch;
}

TEST(LostEventsTest, SpeaksOfLaunchesWithoutKernelInTheMiddle) {
  Sketch sketch;
  const auto finding = find_by_rule(with_lost(sketch, 6, false).trace(), "lost-events");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 6);
  EXPECT_EQ(finding->verdict.values[1].integer, 40);
}

TEST(LostEventsTest, SpeaksOfAGpuRecordingThatStopsEarly) {
  Sketch sketch;
  const auto finding = find_by_rule(with_lost(sketch, 6, true).trace(), "lost-events");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("stops before that of the CPU"));
  EXPECT_EQ(finding->verdict.values[0].integer, 6);
  EXPECT_EQ(finding->verdict.values[1].integer, 40);
  EXPECT_EQ(finding->verdict.values[2].integer, 3'400'000);
}

TEST(LostEventsTest, IsQuietAboutFourAtTheEndAndWhileAStreamIsCaptured) {
  Sketch end;
  EXPECT_FALSE(find_by_rule(with_lost(end, 4, true).trace(), "lost-events"));
  Sketch capture;
  for (int i = 0; i < 20; ++i)
    capture.runtime("cudaLaunchKernel", 1'010'000 + i * 1'000, 500, {.correlation = 100 + i});
  capture.runtime("cudaStreamBeginCapture_v10000", 1'005'000, 1'000)
      .runtime("cudaStreamEndCapture", 1'035'000, 1'000);
  EXPECT_FALSE(find_by_rule(with_lost(capture, 0, true).trace(), "lost-events"));
}

TEST(LostEventsTest, SpeaksOfWorkWithoutLaunchInTheMiddle) {
  Sketch sketch;
  with_lost(sketch, 0, true);
  for (int i = 0; i < 5; ++i) sketch.kernel("other", 2'050'000 + i * 100'000, 10'000);
  const auto finding = find_by_rule(sketch.trace(), "lost-events");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("no launch call"));
  EXPECT_EQ(finding->verdict.values[0].integer, 5);
}

TEST(LostEventsTest, SpeaksOfRecordsThatTheRecorderDropped) {
  Sketch sketch;
  with_lost(sketch, 0, true).builder().stats().count(ImportIssue::kDroppedRecords, {}, 12);
  const auto finding = find_by_rule(sketch.trace(), "lost-events");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 12);
}

}  // namespace
}  // namespace lanescope::explain
