#include "lanescope/simulate/replay.h"

#include <gtest/gtest.h>

#include "lanescope/simulate/drawn_steps_test.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::simulate {
namespace {

using lanescope::testing::ProgramSketch;
using lanescope::testing::Sketch;
using testing::DrawnSteps;

// Every moment, not only the ends of steps.
void expect_identity(const DrawnSteps& drawn) {
  const StepGraph& graph = *drawn.simulation.graph;
  const Replay result = replay(graph, graph.edges);
  EXPECT_EQ(result.time_ns, graph.time_ns);
  for (std::size_t i = 0; i < drawn.windows.size(); ++i) {
    EXPECT_EQ(result.steps[i].start_ns, drawn.windows[i].start_ns) << i;
    EXPECT_EQ(result.steps[i].end_ns, drawn.windows[i].end_ns) << i;
  }
  EXPECT_EQ(drawn.simulation.identity.replayed_busy_ns, drawn.simulation.identity.recorded_busy_ns);
}

TEST(Replay, AnUnchangedProgramTakesWhatItTook) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.launch({.us = 40}).launch({.us = 5}).wait().pass(100);
    p.launch({.us = 30, .stream = 20}).cpu_op("aten::cat", 12);
  });
  expect_identity(DrawnSteps(program.trace()));
}

TEST(Replay, AnUnmarkedRecordingIsOneStep) {
  ProgramSketch program;
  program.begin("work").launch({.us = 40}).pass(20).launch({.us = 5}).wait().end();
  const DrawnSteps drawn(program.trace());
  expect_identity(drawn);
  ASSERT_EQ(drawn.simulation.graph->steps.size(), 1u);
}

TEST(Replay, WorkOfAnotherThreadIsHandedOverAndBack) {
  // The main thread is quiet from 10 to 100 us, in which thread 200 works from 20 to 90 us.
  Sketch sketch;
  for (int step = 0; step < 3; ++step) {
    const std::int64_t at = step * 110'000;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, 110'000);
    sketch.op("aten::mul", at, 10'000);
    sketch.op("MulBackward0", at + 20'000, 70'000, {.tid = 200});
    sketch.runtime("cudaLaunchKernel", at + 30'000, 5'000, {.tid = 200, .correlation = step + 1});
    sketch.kernel("mul", at + 36'000, 4'000, {.correlation = step + 1});
    sketch.op("aten::add_", at + 100'000, 8'000);
  }
  const DrawnSteps drawn(sketch.trace());
  expect_identity(drawn);
  EXPECT_EQ(drawn.simulation.recorded.step_ns, 110'000);
  EXPECT_EQ(drawn.step_ns({"speed MulBackward0 2x"}), 110'000);  // it has GPU work: 4 us, hidden
  EXPECT_EQ(drawn.step_ns({"cpu 2x"}), 55'000);
}

TEST(Replay, GpuWorkThatNothingExplainsKeepsItsStart) {
  // No launch is known of the kernel, and nothing precedes it on its stream.
  Sketch sketch;
  sketch.annotation("ProfilerStep#0", 0, 110'000);
  sketch.op("aten::mul", 0, 10'000);
  sketch.kernel("mul", 36'000, 4'000);
  const DrawnSteps drawn(sketch.trace());
  expect_identity(drawn);
  EXPECT_EQ(drawn.simulation.identity.recorded_busy_ns, 4'000);
}

TEST(Replay, TheCriticalPathOfABusyGpuIsItsKernels) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) { p.kernel("gemm", 500).kernel("relu", 250); });
  const DrawnSteps drawn(program.trace());
  const CriticalPath& path = drawn.simulation.recorded.path;
  EXPECT_EQ(drawn.simulation.recorded.limit, Limit::kGpu);
  // The first step is left out. Kernels follow each other without a gap.
  EXPECT_EQ(path.steps, 3u);
  EXPECT_EQ(path.of(PathKind::kCompute), 3 * 750'000);
  std::int64_t sum = 0;
  for (const std::int64_t time : path.time_ns) sum += time;
  EXPECT_EQ(sum, path.total_ns);
}

TEST(Replay, TheCriticalPathOfAnIdleGpuIsTheCpu) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) { p.pass(300).launch({.us = 5}).wait(); });
  const DrawnSteps drawn(program.trace());
  EXPECT_EQ(drawn.simulation.recorded.limit, Limit::kCpu);
  ASSERT_FALSE(drawn.simulation.recorded.path.owners.empty());
  EXPECT_EQ(drawn.simulation.recorded.path.owners[0].name, "code without events");
}

}  // namespace
}  // namespace lanescope::simulate
