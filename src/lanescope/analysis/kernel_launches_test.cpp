#include "lanescope/analysis/kernel_launches.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

KernelLaunches launches_of(const Trace& trace) {
  return find_kernel_launches(trace, compute_launch_links(trace));
}

// `launched` calls, 10 apart, of which the first `run` have a kernel.
Sketch launches(int launched, int run) {
  Sketch sketch;
  for (int i = 0; i < launched; ++i) {
    sketch.runtime("cudaLaunchKernel", i * 10, 2, {.correlation = i + 1});
    if (i < run) sketch.kernel("k", i * 10 + 3, 5, {.correlation = i + 1});
  }
  return sketch;
}

TEST(KernelLaunchesTest, FiveCallsAndAHundredthOfAllWithoutWorkAtTheEndAreAStop) {
  const KernelLaunches whole = launches_of(launches(20, 20).trace());
  EXPECT_EQ(whole.calls.size(), 20u);
  EXPECT_EQ(whole.lost_at_end(), 0u);
  EXPECT_FALSE(whole.gpu_stops_early());

  const KernelLaunches four = launches_of(launches(20, 16).trace());
  EXPECT_EQ(four.lost_at_end(), 4u);
  EXPECT_FALSE(four.gpu_stops_early());
  const KernelLaunches five = launches_of(launches(20, 15).trace());
  EXPECT_EQ(five.recorded, 15u);
  EXPECT_TRUE(five.gpu_stops_early());

  EXPECT_TRUE(launches_of(launches(500, 495).trace()).gpu_stops_early());
  EXPECT_FALSE(launches_of(launches(501, 496).trace()).gpu_stops_early());
}

TEST(KernelLaunchesTest, WithoutAnyKernelItStopsAtTheFirstLaunchButNotWhereLinksAreMissing) {
  const KernelLaunches none = launches_of(launches(20, 0).trace());
  EXPECT_EQ(none.recorded, 0u);
  EXPECT_TRUE(none.gpu_stops_early());
  Sketch left_over = launches(20, 0);
  left_over.kernel("k", -50, 20);  // of before the recording
  EXPECT_TRUE(launches_of(left_over.trace()).gpu_stops_early());
  Sketch unlinked = launches(20, 0);
  for (int i = 0; i < 20; ++i) unlinked.kernel("k", i * 10 + 3, 5);
  const KernelLaunches nobody_knows = launches_of(unlinked.trace());
  EXPECT_EQ(nobody_knows.recorded, 0u);
  EXPECT_FALSE(nobody_knows.gpu_stops_early());
}

TEST(KernelLaunchesTest, WhatIsCapturedDoesNotRun) {
  Sketch sketch = launches(2, 2);
  sketch.runtime("cudaStreamBeginCapture", 100, 1);
  for (int i = 0; i < 9; ++i) sketch.runtime("cudaLaunchKernel", 110 + i * 10, 2);
  sketch.runtime("cudaStreamEndCapture", 300, 1);
  sketch.runtime("cudaGraphLaunch", 310, 2, {.correlation = 50});
  sketch.kernel("k", 320, 5, {.correlation = 50});
  const KernelLaunches found = launches_of(sketch.trace());
  EXPECT_EQ(found.calls.size(), 3u);
  EXPECT_EQ(found.recorded, 3u);
}

TEST(KernelLaunchesTest, LaunchesOfEveryRuntimeCount) {
  Sketch sketch;
  for (const char* call : {"cudaLaunch", "cuLaunchGridAsync", "hipLaunchByPtr", "musaLaunchKernel",
                           "urEnqueueKernelLaunch", "urEnqueueCommandBufferExp"})
    sketch.runtime(call, 0, 2);
  for (const char* call : {"cudaLaunchHostFunc", "cudaGraphAddKernelNode", "myLaunchKernel"})
    sketch.runtime(call, 10, 2);
  EXPECT_EQ(launches_of(sketch.trace()).calls.size(), 6u);
}

}  // namespace
}  // namespace lanescope::analysis
