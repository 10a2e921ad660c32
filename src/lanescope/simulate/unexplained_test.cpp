#include "lanescope/simulate/unexplained.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/simulate/drawn_steps_test.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::simulate {
namespace {

using lanescope::testing::Sketch;
using testing::DrawnSteps;

std::vector<UnexplainedTime> times_of(const DrawnSteps& drawn) {
  const StepGraph& graph = *drawn.simulation.graph;
  return unexplained_times(graph, replay(graph, graph.edges));
}

// Four steps of 300 us with six kernels. Each starts 6 us after its launch began, runs for 10 us, and a call waits for it. But in the
// last three steps the last kernel starts 100 us after its launch.
Trace late_work(const char* name, const char* call) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int step = 0; step < 4; ++step) {
    const std::int64_t at = step * 300'000;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, 300'000);
    for (int i = 0; i < 6; ++i) {
      const std::int64_t launch = at + i * 30'000;
      const bool is_late = i == 5 && step > 0;
      const std::int64_t start = launch + (is_late ? 100'000 : 6'000);
      ++id;
      sketch.runtime(i >= 3 ? call : "cudaLaunchKernel", launch, 5'000, {.correlation = id});
      sketch.kernel(is_late ? name : "mul", start, 10'000, {.correlation = id});
      sketch.runtime("cudaDeviceSynchronize", launch + 6'000, start + 11'000 - launch - 6'000);
    }
  }
  return sketch.trace();
}

TEST(NotExplained, IsLateWorkByWhatItIs) {
  struct Case {
    const char* name;
    const char* call;
    NotExplained kind;
  };
  for (const auto& [name, call, kind] :
       {Case{"relu", "cudaLaunchKernel", NotExplained::kLateWork},
        Case{"relu", "cudaGraphLaunch", NotExplained::kGraphNode},
        Case{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
             "cudaLaunchKernelExC", NotExplained::kCollective}}) {
    const DrawnSteps drawn(late_work(name, call));
    const auto times = times_of(drawn);
    ASSERT_FALSE(times.empty()) << call;
    EXPECT_EQ(times[0].kind, kind) << call;
    // 100 us from launch to start where 6 us are usual for a launch, in three steady steps.
    EXPECT_GE(times[0].time_ns, 3 * 80'000) << call;
    EXPECT_LE(times[0].time_ns, 3 * 100'000) << call;
    EXPECT_EQ(drawn.trace.name(times[0].longest), std::string_view(name));
  }
}

TEST(NotExplained, IsNothingWhereAllDelaysAreUsual) {
  Sketch sketch;
  for (int step = 0; step < 4; ++step) {
    const std::int64_t at = step * 100'000;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, 100'000);
    sketch.runtime("cudaLaunchKernel", at + 10'000, 5'000, {.correlation = step + 1});
    sketch.kernel("mul", at + 16'000, 10'000, {.correlation = step + 1});
    sketch.runtime("cudaDeviceSynchronize", at + 16'000, 11'000);
  }
  EXPECT_TRUE(times_of(DrawnSteps(sketch.trace())).empty());
}

}  // namespace
}  // namespace lanescope::simulate
