#include "lanescope/simulate/slack.h"

#include <gtest/gtest.h>

#include "lanescope/simulate/drawn_steps_test.h"
#include "lanescope/testing/program_sketch.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::simulate {
namespace {

using lanescope::testing::ProgramSketch;
using lanescope::testing::Sketch;
using testing::DrawnSteps;

Slack slack_of_steps(const DrawnSteps& drawn) {
  const StepGraph& graph = *drawn.simulation.graph;
  return slack_of(graph, replay(graph, graph.edges));
}

// Steps of 200 us of the CPU. A call from 10 to 15 us launches a kernel of 30 us, from 20 to 50 us, for which nothing waits.
Trace hidden_kernel() {
  Sketch sketch;
  for (int step = 0; step < 4; ++step) {
    const std::int64_t at = step * 200'000;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, 200'000);
    sketch.op("aten::mul", at, 190'000);
    sketch.runtime("cudaLaunchKernel", at + 10'000, 5'000, {.correlation = step + 1});
    sketch.kernel("mul", at + 20'000, 30'000, {.correlation = step + 1});
  }
  return sketch.trace();
}

TEST(Slack, AHiddenKernelMayTakeLongerUntilTheStepEnds) {
  const DrawnSteps drawn(hidden_kernel());
  const Slack slack = slack_of_steps(drawn);
  EXPECT_EQ(slack.steps, 3u);
  ASSERT_EQ(slack.kernels.size(), 1u);
  const SlackRow& kernel = slack.kernels[0];
  EXPECT_EQ(kernel.name, "mul");
  EXPECT_EQ(kernel.pieces, 3u);
  EXPECT_EQ(kernel.time_ns, 3 * 30'000);
  EXPECT_EQ(kernel.critical_ns, 0);
  // It ends at 50 us, the step at 200 us.
  EXPECT_EQ(kernel.least_ns, 150'000);
  EXPECT_EQ(kernel.median_ns, 150'000);
  // The CPU's own time is all on the path.
  EXPECT_TRUE(slack.operators.empty());
  ASSERT_EQ(slack.places.size(), 1u);
  EXPECT_TRUE(slack.places[0].is_gpu);
}

TEST(Slack, IsExactlyWhatAPieceMayTakeLonger) {
  // 150 us longer changes nothing, 1 us more adds that to the step.
  const DrawnSteps drawn(hidden_kernel());
  const StepGraph& graph = *drawn.simulation.graph;
  for (const std::int64_t more_ns : {std::int64_t{150'000}, std::int64_t{151'000}}) {
    std::vector<Edge> edges = graph.edges;
    edges[graph.works.back().work_edge].weight_ns += more_ns;
    const Replay longer = replay(graph, edges);
    EXPECT_EQ(longer.steps.back().length_ns(), 200'000 + more_ns - 150'000);
  }
}

TEST(Slack, TheCpuOfABusyGpuMayBeLater) {
  // Kernels of 500 and 250 us follow each other; the CPU launches each in 1 us and runs ahead.
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) { p.kernel("gemm", 500).kernel("relu", 250); });
  const DrawnSteps drawn(program.trace());
  const Slack slack = slack_of_steps(drawn);
  EXPECT_TRUE(slack.kernels.empty());
  ASSERT_EQ(slack.places.size(), 1u);
  EXPECT_FALSE(slack.places[0].is_gpu);
  EXPECT_GT(slack.places[0].least_ns, 700'000);
}

TEST(Slack, OfEachPieceOfRealStepsIsNeverLessThanZero) {
  ProgramSketch program;
  program.steps(5, [](ProgramSketch& p) {
    p.launch({.us = 40}).launch({.us = 5, .stream = 20}).wait().pass(100);
    p.launch({.us = 30, .stream = 20}).cpu_op("aten::cat", 12);
  });
  const DrawnSteps drawn(program.trace());
  const StepGraph& graph = *drawn.simulation.graph;
  const Replay recorded = replay(graph, graph.edges);
  const std::vector<std::int64_t> latest = latest_times(graph, graph.edges, recorded);
  for (std::size_t point = 0; point < latest.size(); ++point)
    EXPECT_GE(latest[point], recorded.time_ns[point]) << point;
}

}  // namespace
}  // namespace lanescope::simulate
