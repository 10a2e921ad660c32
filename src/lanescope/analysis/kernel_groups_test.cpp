#include "lanescope/analysis/kernel_groups.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

std::vector<KernelGroup> groups_of(const Trace& trace, const std::vector<Window>& windows) {
  const LaunchLinks links = compute_launch_links(trace);
  const auto timelines = compute_device_timelines(trace, links);
  EXPECT_EQ(timelines.size(), 1u);
  return compute_kernel_groups(trace, links, timelines.at(0), windows);
}

// 10, 20, 30, 40 and 100 ns: the median is 30, the distances from it are 20, 10, 0, 10, 70, whose
// median is 10; place 4 * 95 / 100 = 3 in order is 40.
TEST(KernelGroupsTest, MedianDistanceAndPercentileOfFiveCalls) {
  Sketch sketch;
  std::int64_t start = 0;
  for (const std::int64_t dur : {40, 10, 100, 30, 20}) {
    sketch.kernel("gemm", start, dur);
    start += 1000;
  }
  const Trace trace = sketch.trace();
  const auto groups = groups_of(trace, {{0, 10'000}});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].count, 5u);
  EXPECT_EQ(groups[0].total_ns, 200);
  EXPECT_EQ(groups[0].busy_ns, 200);
  EXPECT_EQ(groups[0].shortest_ns, 10);
  EXPECT_EQ(groups[0].median_ns, 30);
  EXPECT_EQ(groups[0].mad_ns, 10);
  EXPECT_EQ(groups[0].p95_ns, 40);
  EXPECT_EQ(groups[0].longest_ns, 100);
  EXPECT_EQ(trace.start_ns(groups[0].median_call), 3000);
}

// Of two calls the shorter one is the median; two that run at once are busy once.
TEST(KernelGroupsTest, OverlappingCallsAreBusyOnce) {
  Sketch sketch;
  sketch.kernel("gemm", 0, 100, {.stream = 7}).kernel("gemm", 50, 120, {.stream = 9});
  const auto groups = groups_of(sketch.trace(), {{0, 1000}});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].total_ns, 220);
  EXPECT_EQ(groups[0].busy_ns, 170);
  EXPECT_EQ(groups[0].median_ns, 100);
  EXPECT_EQ(groups[0].mad_ns, 0);
}

// Of [50, 250) the window [0, 100) holds 50 and [200, 1000) another 50; the device is busy in these
// for 100, so that no group's share is more than all of it.
TEST(KernelGroupsTest, TimeOutsideOfTheWindowsIsNoBusyTime) {
  Sketch sketch;
  sketch.kernel("gemm", 50, 200, {.stream = 7}).kernel("gemm", 90, 20, {.stream = 9});
  const auto groups = groups_of(sketch.trace(), {{0, 100}, {200, 1000}});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].busy_ns, 100);
  EXPECT_EQ(groups[0].total_ns, 220);
  EXPECT_EQ(groups[0].longest_ns, 200);
}

TEST(KernelGroupsTest, GridsAndShapesMakeGroupsOfTheirOwn) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 90, {.input_dims = "[[8,8],[8,8]]"})
      .runtime("cudaLaunchKernel", 10, 5, {.correlation = 1})
      .runtime("cudaLaunchKernel", 20, 5, {.correlation = 2})
      .op("aten::mm", 100, 90, {.input_dims = "[[16,16],[16,16]]"})
      .runtime("cudaLaunchKernel", 110, 5, {.correlation = 3})
      .kernel("gemm", 1000, 10, {.correlation = 1, .grid = "[1, 1, 1]"})
      .kernel("gemm", 2000, 20, {.correlation = 2, .grid = "[2, 1, 1]"})
      .kernel("gemm", 3000, 40, {.correlation = 3, .grid = "[1, 1, 1]"});
  const Trace trace = sketch.trace();
  const auto groups = groups_of(trace, {{0, 10'000}});
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].total_ns, 40);
  EXPECT_EQ(trace.name(groups[0].op), "aten::mm");
}

// 3 MB in two copies of other sizes; what begins outside of the windows does not count.
TEST(KernelGroupsTest, CopiesOfOneKindAreOneGroupWithTheirBytes) {
  Sketch sketch;
  for (const std::int64_t start : {0, 1000, 5000})
    sketch.slice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", start, 100,
                 {.bytes = start == 0 ? 1'000'000 : 2'000'000});
  const auto groups = groups_of(sketch.trace(), {{0, 500}, {900, 2000}});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].work, WorkClass::kCopy);
  EXPECT_EQ(groups[0].count, 2u);
  EXPECT_EQ(groups[0].bytes, 3'000'000);
}

}  // namespace
}  // namespace lanescope::analysis
