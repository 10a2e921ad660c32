#include "lanescope/analysis/steps.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

std::vector<Window> windows_of(const Trace& trace) {
  const LaunchLinks links = compute_launch_links(trace);
  return compute_step_windows(trace, links, find_steps(trace, links),
                              compute_device_timelines(trace, links).at(0));
}

void expect_window(const Window& window, std::int64_t start_ns, std::int64_t end_ns) {
  EXPECT_EQ(window.start_ns, start_ns);
  EXPECT_EQ(window.end_ns, end_ns);
}

// The CPU is done with three steps at 30; the device needs until 120. Its steps are [0, 41),
// [41, 81), [81, 120), not [0, 10), [10, 20), [20, 30).
TEST(StepsTest, ADeviceThatLagsKeepsItsOwnBoundaries) {
  const Trace trace = Sketch()
                          .annotation("ProfilerStep#1", 0, 9)
                          .annotation("ProfilerStep#2", 10, 9)
                          .annotation("ProfilerStep#3", 20, 10)
                          .runtime("cudaLaunchKernel", 1, 1, {.correlation = 1})
                          .runtime("cudaLaunchKernel", 11, 1, {.correlation = 2})
                          .runtime("cudaLaunchKernel", 21, 1, {.correlation = 3})
                          .kernel("gemm", 3, 38, {.correlation = 1})
                          .kernel("gemm", 41, 40, {.correlation = 2})
                          .kernel("gemm", 81, 39, {.correlation = 3})
                          .trace();
  const auto windows = windows_of(trace);
  ASSERT_EQ(windows.size(), 3u);
  expect_window(windows[0], 0, 41);
  expect_window(windows[1], 41, 81);
  expect_window(windows[2], 81, 120);
}

TEST(StepsTest, ADeviceThatWaitsForTheCpuHasTheCpusBoundaries) {
  const Trace trace = Sketch()
                          .annotation("ProfilerStep#1", 0, 48)
                          .annotation("ProfilerStep#2", 50, 40)
                          .runtime("cudaLaunchKernel", 10, 1, {.correlation = 1})
                          .runtime("cudaLaunchKernel", 60, 1, {.correlation = 2})
                          .kernel("gemm", 12, 3, {.correlation = 1})
                          .kernel("gemm", 62, 3, {.correlation = 2})
                          .trace();
  const auto windows = windows_of(trace);
  ASSERT_EQ(windows.size(), 2u);
  expect_window(windows[0], 0, 50);
  expect_window(windows[1], 50, 90);
}

// The kernel without a launch was launched by a step before the recording: step 1 begins after it.
TEST(StepsTest, WorkFromBeforeTheRecordingBelongsToNoStep) {
  const Trace trace = Sketch()
                          .annotation("ProfilerStep#1", 0, 20)
                          .runtime("cudaLaunchKernel", 1, 1, {.correlation = 2})
                          .runtime("cudaLaunchKernel", 2, 1, {.correlation = 3})
                          .kernel("gemm", 0, 30, {.correlation = 1})
                          .kernel("gemm", 30, 10, {.correlation = 2})
                          .kernel("gemm", 40, 10, {.correlation = 3})
                          .trace();
  const auto windows = windows_of(trace);
  ASSERT_EQ(windows.size(), 1u);
  expect_window(windows[0], 30, 50);
}

// Steps 2 and 5: between them the schedule waited, and that is no part of step 2.
TEST(StepsTest, AMissingStepNumberEndsTheStepBefore) {
  const Trace trace =
      Sketch().annotation("ProfilerStep#2", 0, 10).annotation("ProfilerStep#5", 100, 10).trace();
  const Steps steps = find_steps(trace, compute_launch_links(trace));
  ASSERT_EQ(steps.steps.size(), 2u);
  EXPECT_EQ(steps.steps[0].cpu_end_ns, 10);
  EXPECT_EQ(steps.start_up_count, 1u);
}

TEST(StepsTest, WithoutMarksTheRecordingGoesFromTheFirstLaunchToTheLastWork) {
  const Trace trace = Sketch()
                          .op("aten::empty", 0, 50)
                          .runtime("cudaLaunchKernel", 100, 5, {.correlation = 1})
                          .kernel("gemm", 110, 30, {.correlation = 1})
                          .runtime("cudaDeviceSynchronize", 150, 500)
                          .trace();
  const Steps steps = find_steps(trace, compute_launch_links(trace));
  EXPECT_FALSE(steps.marked);
  ASSERT_EQ(steps.steps.size(), 1u);
  EXPECT_EQ(steps.steps[0].cpu_start_ns, 100);
  EXPECT_EQ(steps.steps[0].cpu_end_ns, 140);
}

// The GPU works until 100, then the CPU for `us`: its operators belong to the recording if they take a tenth of it, but not where
// the GPU's recording stopped early.
TEST(StepsTest, MuchWorkOfTheCpuAfterTheLastDeviceWorkIsPartOfTheRecording) {
  const auto end_with = [](std::int64_t us, bool launches_more) {
    Sketch sketch;
    sketch.runtime("cudaLaunchKernel", 0, 1, {.correlation = 1});
    sketch.kernel("gemm", 2, 98, {.correlation = 1});
    sketch.op("aten::argmax", 100, us, {});
    if (launches_more) sketch.runtime("cudaLaunchKernel", 100 + us, 1, {.correlation = 2});
    const Trace trace = sketch.trace();
    return find_steps(trace, compute_launch_links(trace)).steps.at(0).cpu_end_ns;
  };
  EXPECT_EQ(end_with(100, false), 200);
  EXPECT_EQ(end_with(5, false), 100);
  EXPECT_EQ(end_with(100, true), 100);
}

TEST(StepsTest, AnEmptyTraceHasNoSteps) {
  const Trace trace = Sketch().trace();
  EXPECT_TRUE(find_steps(trace, compute_launch_links(trace)).steps.empty());
}

// Median of {10, 11, 12, 30, 10}: 11. Deviations {1, 0, 1, 19, 1}: median 1. Limit 11 + max(2.2,
// 4.4) = 15.4: only 30 is slow.
TEST(StepsTest, SlowStepsStandOutFromTheMedianAndItsDeviation) {
  const StepStatistics statistics = step_statistics({10, 11, 12, 30, 10});
  EXPECT_EQ(statistics.median_ns, 11);
  EXPECT_EQ(statistics.mad_ns, 1);
  EXPECT_EQ(statistics.slow, (std::vector<std::size_t>{3}));
  EXPECT_TRUE(step_statistics({10, 30}).slow.empty());
  EXPECT_EQ(lower_median({4, 1, 3, 2}), 2);
}

// Of {20, 10, 41, 31} the two in the middle are 20 and 31: 25. Deviations {5, 15, 16, 6}: between 6
// and 15, 10.
TEST(StepsTest, TheMedianOfAnEvenNumberOfStepsIsTheMeanOfTheTwoInTheMiddle) {
  const StepStatistics statistics = step_statistics({20, 10, 41, 31});
  EXPECT_EQ(statistics.median_ns, 25);
  EXPECT_EQ(statistics.mad_ns, 10);
  EXPECT_EQ(median_of_steps({}), 0);
  EXPECT_EQ(median_of_steps({7}), 7);
  EXPECT_EQ(median_of_steps({9, 3}), 6);
  EXPECT_EQ(median_of_steps({-4, -1}), -3);  // rounded down
}

}  // namespace
}  // namespace lanescope::analysis
