#include "lanescope/analysis/step_costs.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

StepCosts costs_of(const Trace& trace, const std::vector<Window>& windows, std::int64_t steps) {
  const LaunchLinks links = compute_launch_links(trace);
  const SliceNesting nesting = compute_slice_nesting(trace);
  const auto timelines = compute_device_timelines(trace, links);
  const DeviceTimeline* timeline = timelines.empty() ? nullptr : &timelines[0];
  Gaps gaps;
  if (timeline)
    gaps = find_gaps(trace, links, *timeline, {windows.front().start_ns, windows.back().end_ns});
  return compute_step_costs({trace, links, nesting, timeline, &gaps, windows, windows, steps});
}

// One operator launches gemm twice and a copy once; window [0, 200).
//   CPU:  aten::mm [0, 60): launch [5, 10), launch [20, 30), cudaMemcpy [40, 55)
//   GPU:  gemm [30, 50), gemm [60, 90), copy [100, 110)
//   idle: [0, 30) before the first gemm, whose launch ended at 10: 10 before the first work and
//         20 of launch latency; [50, 60) and [90, 100): launched before;
//         [110, 200): nothing follows
Trace one_step() {
  return Sketch()
      .op("aten::mm", 0, 60, {.input_dims = "[[4, 4], [4, 4]]"})
      .runtime("cudaLaunchKernel", 5, 5, {.correlation = 1})
      .runtime("cudaLaunchKernel", 20, 10, {.correlation = 2})
      .runtime("cudaMemcpy", 40, 15, {.correlation = 3})
      .kernel("gemm", 30, 20, {.correlation = 1})
      .kernel("gemm", 60, 30, {.correlation = 2})
      .slice("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 100, 10, {.correlation = 3})
      .trace();
}

TEST(StepCostsTest, WorkIsGroupedByNameOperatorAndShapes) {
  const StepCosts costs = costs_of(one_step(), {{0, 200}}, 1);
  ASSERT_EQ(costs.work.size(), 2u);
  EXPECT_EQ(costs.work[1].name, "gemm");
  EXPECT_EQ(costs.work[1].op, "aten::mm");
  EXPECT_EQ(costs.work[1].dims, "[[4, 4], [4, 4]]");
  EXPECT_EQ(costs.work[1].count, 2u);
  EXPECT_EQ(costs.work[1].time_ns, 50);
  EXPECT_EQ(costs.work[0].work, WorkClass::kCopy);
  EXPECT_EQ(costs.work[0].time_ns, 10);
  EXPECT_EQ(costs.wall.wall_ns, 200);
  EXPECT_EQ(costs.wall.compute_ns, 50);
}

TEST(StepCostsTest, IdleTimeIsGroupedByCauseAndWhatCameNext) {
  const StepCosts costs = costs_of(one_step(), {{0, 200}}, 1);
  ASSERT_EQ(costs.gaps.size(), 4u);
  EXPECT_EQ(costs.gaps[0].cause, IdleCause::kLaunchLatency);
  EXPECT_EQ(costs.gaps[0].before, "aten::mm");
  EXPECT_EQ(costs.gaps[0].time_ns, 20);
  EXPECT_EQ(costs.gaps[1].cause, IdleCause::kBetweenQueued);
  EXPECT_EQ(costs.gaps[1].count, 2u);
  EXPECT_EQ(costs.gaps[1].time_ns, 20);
  EXPECT_EQ(costs.gaps[2].cause, IdleCause::kBeforeFirstWork);
  EXPECT_EQ(costs.gaps[2].time_ns, 10);
  EXPECT_EQ(costs.gaps[3].cause, IdleCause::kAfterLastWork);
  EXPECT_EQ(costs.gaps[3].before, "");
  EXPECT_EQ(costs.gaps[3].time_ns, 90);
  std::int64_t idle = 0;
  for (const std::int64_t each : costs.idle) idle += each;
  EXPECT_EQ(idle, 140);
  EXPECT_EQ(costs.wall.idle_ns, 140);
}

// aten::mm itself: 60 - 5 - 10 - 15.
TEST(StepCostsTest, CpuTimeIsSelfTimeByClass) {
  const StepCosts costs = costs_of(one_step(), {{0, 200}}, 1);
  ASSERT_EQ(costs.cpu.size(), 3u);
  EXPECT_EQ(costs.cpu[0].cpu, CpuClass::kOperator);
  EXPECT_EQ(costs.cpu[0].self_ns, 30);
  EXPECT_EQ(costs.cpu[1].cpu, CpuClass::kCall);
  EXPECT_EQ(costs.cpu[1].name, "cudaLaunchKernel");
  EXPECT_EQ(costs.cpu[1].count, 2u);
  EXPECT_EQ(costs.cpu[1].self_ns, 15);
  EXPECT_EQ(costs.cpu[2].cpu, CpuClass::kWait);
  EXPECT_EQ(costs.cpu[2].self_ns, 15);
}

// Windows [35, 45) and [65, 80): 10 of the first gemm, 15 of the second; both began outside.
TEST(StepCostsTest, WindowsCutWork) {
  const StepCosts costs = costs_of(one_step(), {{35, 45}, {65, 80}}, 2);
  ASSERT_EQ(costs.work.size(), 1u);
  EXPECT_EQ(costs.work[0].count, 2u);
  EXPECT_EQ(costs.work[0].time_ns, 25);
  EXPECT_EQ(costs.wall.wall_ns, 25);
  EXPECT_EQ(costs.cpu.size(), 1u);  // cudaMemcpy began at 40
}

TEST(StepCostsTest, ATraceWithoutDeviceWorkHasCpuCosts) {
  const Trace trace = Sketch().op("aten::mm", 0, 60).trace();
  const StepCosts costs = costs_of(trace, {{0, 100}}, 1);
  EXPECT_TRUE(costs.work.empty());
  EXPECT_EQ(costs.wall.wall_ns, 0);
  ASSERT_EQ(costs.cpu.size(), 1u);
  EXPECT_EQ(costs.cpu[0].self_ns, 60);
  EXPECT_EQ(costs.cpu_wall_ns, 100);
}

}  // namespace
}  // namespace lanescope::analysis
