#include "lanescope/simulate/simulated_trace.h"

#include <gtest/gtest.h>

#include "lanescope/simulate/drawn_steps_test.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::simulate {
namespace {

using lanescope::testing::ProgramSketch;
using testing::DrawnSteps;

Trace program() {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.begin("forward").launch({.us = 40}).launch({.us = 5}).end().wait().pass(100);
    p.launch({.us = 30, .stream = 20}).cpu_op("aten::cat", 12);
  });
  return program.trace();
}

Result<Trace> simulated(const DrawnSteps& drawn, std::initializer_list<const char*> texts) {
  std::vector<Change> changes;
  for (const char* text : texts) changes.push_back(*parse_change(text));
  const auto edges = changed_edges(drawn.simulation, changes);
  EXPECT_TRUE(edges);
  return simulated_trace(*drawn.simulation.graph, replay(*drawn.simulation.graph, *edges), "drawn");
}

TEST(SimulatedTrace, WithoutAChangeItIsTheTrace) {
  const DrawnSteps drawn(program());
  const auto same = simulated(drawn, {});
  ASSERT_TRUE(same);
  EXPECT_EQ(same->slices().start_ns, drawn.trace.slices().start_ns);
  ASSERT_EQ(same->slices().size(), drawn.trace.slices().size());
  for (std::size_t i = 0; i < same->slices().size(); ++i)
    EXPECT_EQ(same->slices().dur_ns[i], drawn.trace.slices().dur_ns[i]) << i;
  EXPECT_EQ(same->slices().name, drawn.trace.slices().name);
}

TEST(SimulatedTrace, ItKeepsWhatHoldsForEveryTrace) {
  for (const char* change :
       {"cpu 2x", "speed gemm 2x", "remove-sync", "remove aten::cat", "cuda-graph", "gpu 3x"}) {
    const DrawnSteps drawn(program());
    const bool needs_no_wait = std::string_view(change) == "cuda-graph";
    const auto made =
        needs_no_wait ? simulated(drawn, {change, "remove-sync"}) : simulated(drawn, {change});
    ASSERT_TRUE(made) << change;
    const SliceColumns& slices = made->slices();
    ASSERT_EQ(slices.size(), drawn.trace.slices().size());
    // In order, inside each other or apart, and never negative.
    const auto nesting = analysis::compute_slice_nesting(*made);
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      EXPECT_GE(slices.dur_ns[i], 0) << change;
      if (i > 0 && slices.track[i] == slices.track[i - 1]) {
        EXPECT_GE(slices.start_ns[i], slices.start_ns[i - 1]) << change;
      }
      const SliceId parent = nesting.parent[i];
      if (parent == kNone<SliceId>) continue;
      EXPECT_GE(slices.start_ns[i], made->start_ns(parent)) << change;
      EXPECT_LE(slices.start_ns[i] + slices.dur_ns[i], made->end_ns(parent)) << change;
    }
    // No work starts before its launch, and its streams do one thing at a time.
    const auto links = analysis::compute_launch_links(*made);
    for (const auto& device : analysis::compute_device_timelines(*made, links)) {
      for (const auto& work : device.work) {
        const SliceId launch = links.launch_of[raw(work.slice)];
        if (launch == kNone<SliceId>) continue;
        EXPECT_GE(work.start_ns, made->start_ns(launch)) << change;
      }
    }
    // Read again, it has the step that was predicted.
    const auto steps = analysis::find_steps(*made, links);
    EXPECT_EQ(steps.steps.size(), 4u) << change;
  }
}

// A copy of 300 us and a kernel of 500: next to each other they take 500 us a step.
TEST(SimulatedTrace, CopiesThatOverlapHaveAStreamOfTheirOwn) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.launch({.name = "Memcpy HtoD (Pinned -> Device)",
              .us = 300,
              .category = "gpu_memcpy",
              .call = "cudaMemcpyAsync"});
    p.kernel("gemm", 500);
  });
  const DrawnSteps drawn(program.trace());
  auto made = simulated(drawn, {"overlap-copies"});
  ASSERT_TRUE(made);
  ASSERT_EQ(made->tracks().size(), drawn.trace.tracks().size() + 1);
  const Track& added = made->tracks().back();
  EXPECT_EQ(added.stream, 8);  // the only one was 7
  EXPECT_EQ(added.slice_count, 4u);
  for (std::uint32_t i = 0; i < added.slice_count; ++i)
    EXPECT_EQ(made->name(SliceId{added.first_slice + i}), "Memcpy HtoD (Pinned -> Device)");
  const DrawnSteps again(*std::move(made));
  EXPECT_EQ(again.simulation.recorded.step_ns, 500'000);
}

TEST(SimulatedTrace, SaysThatItIsSimulated) {
  const DrawnSteps drawn(program());
  EXPECT_EQ(simulated_by(drawn.trace), "");
  const StepGraph& graph = *drawn.simulation.graph;
  auto once = simulated_trace(graph, replay(graph, graph.edges), R"(speed "a\b" 2x)");
  ASSERT_TRUE(once);
  EXPECT_EQ(simulated_by(*once), R"(lanescope whatif: speed "a\b" 2x)");
  // Its steps hold no cost of recording any more.
  const DrawnSteps again(*std::move(once));
  EXPECT_EQ(again.simulation.unprofiled.outcome.step_ns, again.simulation.recorded.step_ns);
  EXPECT_LT(drawn.simulation.unprofiled.outcome.step_ns, drawn.simulation.recorded.step_ns);
  const StepGraph& second = *again.simulation.graph;
  const auto twice = simulated_trace(second, replay(second, second.edges), "cpu 2x");
  ASSERT_TRUE(twice);
  EXPECT_EQ(simulated_by(*twice), R"(lanescope whatif: speed "a\b" 2x; cpu 2x)");
}

}  // namespace
}  // namespace lanescope::simulate
