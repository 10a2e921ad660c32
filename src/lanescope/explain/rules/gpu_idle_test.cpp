#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Every step has one pause of 60 us in 200 us of work.
ProgramSketch with_pause(std::int64_t pause_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.wait("aten::nonzero").pass(pause_us).end();
  }
  return program;
}

TEST(GpuIdleTest, SpeaksOfThePauseAndItsCause) {
  const auto finding = find_by_rule(with_pause(60).trace(), "gpu-idle");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->at_stake_ratio, 0.25, 0.06);
  EXPECT_THAT(finding->verdict.values[4].text, ::testing::HasSubstr("waited for the GPU"));
}

TEST(GpuIdleTest, IsCoveredByHostBoundButSpeaksWhenAsked) {
  const Trace trace = loop(4, 10, {.us = 1}).trace();
  EXPECT_TRUE(find_by_rule(trace, "gpu-idle"));
  const auto all = run_rules(*gather_facts(trace));
  const auto run = std::find_if(all->runs.begin(), all->runs.end(),
                                [](const RuleRun& each) { return each.id == "gpu-idle"; });
  ASSERT_NE(run, all->runs.end());
  EXPECT_EQ(run->state, RuleRun::State::kCovered);
  EXPECT_EQ(run->covered_by, "host-bound");
}

// Kernels of 100 us and pauses of 100, without launch calls: what is missing depends on the rest.
TEST(GpuIdleTest, AsksForWhatIsMissing) {
  for (const bool has_operators : {false, true}) {
    testing::Sketch sketch;
    for (std::int64_t i = 0; i < 10; ++i) {
      sketch.kernel("gemm", us(200) * i, us(100));
      if (has_operators) sketch.op("aten::mm", us(200) * i, us(20));
    }
    const auto finding = find_by_rule(sketch.trace(), "gpu-idle");
    ASSERT_TRUE(finding);
    EXPECT_THAT(finding->action.pattern,
                ::testing::HasSubstr(has_operators ? "launch calls" : "ProfilerActivity.CPU"));
  }
}

// What the profiler's own work costs is a note: there is nothing to do.
TEST(GpuIdleTest, TheProfilersOwnWorkIsNoCost) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.launch({.us = 300})
        .wait()
        .overhead("Activity Buffer Request", 200)
        .launch({.us = 300})
        .wait();
  });
  const Trace trace = program.trace();
  const auto finding = find_by_rule(trace, "gpu-idle");
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->action.pattern.starts_with("Change nothing"));
  EXPECT_EQ(finding->kind, FindingKind::kTrust);
  const auto facts = gather_facts(trace);
  const auto all = run_rules_and_gains(*facts);
  for (const Suggestion& each : do_first(*facts, *all))
    EXPECT_NE(all->findings[each.finding].rule, "gpu-idle");
}

TEST(GpuIdleTest, IsQuietBelowTenPercent) {
  EXPECT_FALSE(find_by_rule(with_pause(2).trace(), "gpu-idle"));
}

// A pause that is the launch of a graph is not the CPU's other work.
TEST(GpuIdleTest, NamesTheLaunchOfAGraph) {
  const auto draw = [](std::string_view call) {
    testing::ProgramSketch program;
    program.steps(4, [&](testing::ProgramSketch& p) {
      p.launch({.us = 600}).wait();
      p.launch({.us = 600, .call = call, .call_us = 400}).wait();
    });
    return program.trace();
  };
  const auto of_graph = find_by_rule(draw("cudaGraphLaunch"), "gpu-idle");
  ASSERT_TRUE(of_graph);
  ASSERT_FALSE(of_graph->brief.values.empty());
  EXPECT_EQ(of_graph->brief.values.at(0).text, "cudaGraphLaunch");
  const auto of_kernel = find_by_rule(draw("cudaLaunchKernel"), "gpu-idle");
  ASSERT_TRUE(of_kernel);
  EXPECT_TRUE(of_kernel->brief.values.empty());
}

}  // namespace
}  // namespace lanescope::explain
