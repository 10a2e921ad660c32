// Rules about CUDA graphs, on drawn programs. Microseconds; the first step is start-up.
#include <gmock/gmock.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using testing::Sketch;

// Ten launches of 1 us of work a step; `odd` steps launch something else at the end.
ProgramSketch small_steps(bool odd_differs, bool waits) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) {
      program.launch({.name = odd_differs && i % 2 == 1 && k == 9 ? "other" : "gemm", .us = 1});
      if (waits && k == 4) program.wait("aten::item");
    }
    program.end();
  }
  return program;
}

// Launch k of a step begun at s ends at s + 7 + 10k, its kernel runs [s + 9 + 10k, s + 10 + 10k).
// Between the first launch (s + 3) and the last one's end (s + 97) the GPU waits 4 us for the first
// and 7 us for each of nine more.
TEST(GraphOpportunityTest, SpeaksWhenAllStepsLaunchTheSame) {
  const auto finding = find_by_rule(small_steps(false, false).trace(), "graph-opportunity");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values[2].integer, 10);  // pieces
  EXPECT_EQ(finding->at_stake_ns, 67'000);
}

TEST(GraphOpportunityTest, ListsWhatIsInTheWay) {
  const auto finding = find_by_rule(small_steps(false, true).trace(), "graph-opportunity");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);  // the wait comes first
  ASSERT_EQ(finding->evidence.size(), 1u);
  EXPECT_EQ(finding->evidence[0].text.values[0].text, "aten::item");
  EXPECT_EQ(finding->evidence[0].text.values[1].integer, 3);
}

// 60 times the same kernel: a loop, which one call over the batch would end.
TEST(GraphOpportunityTest, ALoopComesFirst) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 60; ++k) program.launch({.us = 1});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "graph-opportunity");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->arithmetic[0].values[0].integer, 60);
}

TEST(GraphOpportunityTest, SaysWhereStepsDiffer) {
  const auto finding = find_by_rule(small_steps(true, false).trace(), "graph-opportunity");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->at_stake_ns, 0);
  EXPECT_EQ(finding->verdict.values[0].integer, 10);  // the tenth piece
}

// Steps of 100 us with four launches each, and a fifth whose call on another thread returns in the
// next step but one. In a step the GPU waits 4 us for the first launch, 3 x 17 for the next ones,
// 23 for the fifth and 9 until the end, which belongs to the spans of two or three steps.
TEST(GraphOpportunityTest, CallsThatReachIntoLaterStepsCountTheirWaitOnce) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 1; i <= 4; ++i) {
    const std::int64_t at = i * 100;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(at), us(100));
    for (int k = 0; k < 4; ++k) {
      sketch.runtime("cudaLaunchKernel", us(at + k * 20), us(4), {.correlation = ++id});
      sketch.kernel("gemm", us(at + k * 20 + 6), us(1), {.correlation = id});
    }
    sketch.runtime("cudaLaunchKernel", us(at + 80), us(150), {.tid = 200 + i, .correlation = ++id});
    sketch.kernel("gemm", us(at + 90), us(1), {.correlation = id});
  }
  const auto finding = find_by_rule(sketch.trace(), "graph-opportunity");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(87));
  EXPECT_DOUBLE_EQ(finding->at_stake_ratio, 0.87);
}

TEST(GraphOpportunityTest, IsQuietWhenTheGpuIsTheLimit) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) program.launch({.us = 50});
    program.end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "graph-opportunity"));
}

TEST(GraphOpportunityTest, NeedsSteps) {
  ProgramSketch program;
  for (int k = 0; k < 30; ++k) program.launch({.us = 1});
  EXPECT_EQ(state_of_rule(program.trace(), "graph-opportunity"), RuleRun::State::kNotChecked);
}

// A replay of three kernels of 100 us every `period_us`.
Sketch replays(std::int64_t period_us, int count = 5) {
  Sketch sketch;
  std::int64_t free_us = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = i * period_us, start = std::max(at + 12, free_us);
    sketch.runtime("cudaGraphLaunch", us(at), us(10), {.correlation = i + 1});
    for (int k = 0; k < 3; ++k)
      sketch.kernel("gemm", us(start + k * 100), us(100), {.correlation = i + 1});
    free_us = start + 300;
  }
  return sketch;
}

// Done at 312, launched again at 1010, begun at 1012: 700 us, four times.
TEST(GraphGapsTest, SpeaksOfTheWaitBetweenReplays) {
  const auto finding = find_by_rule(replays(1000).trace(), "graph-gaps");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(2800));
  EXPECT_EQ(finding->sample_count, 4u);
}

TEST(GraphGapsTest, IsQuietWhenReplaysAreQueued) {
  EXPECT_FALSE(find_by_rule(replays(100).trace(), "graph-gaps"));
}

TEST(GraphGapsTest, IsQuietOnOneReplay) {
  EXPECT_FALSE(find_by_rule(replays(1000, 1).trace(), "graph-gaps"));
}

// Steps of 1 ms: a replay each, but `bare` launches six kernels itself.
Sketch stepped(int bare) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 1; i <= 4; ++i) {
    const std::int64_t at = i * 1000;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(at), us(1000));
    if (i != bare) {
      sketch.runtime("cudaGraphLaunch", us(at), us(10), {.correlation = ++id});
      for (int k = 0; k < 6; ++k)
        sketch.kernel("gemm", us(at + 12 + k * 100), us(100), {.correlation = id});
      continue;
    }
    for (int k = 0; k < 6; ++k) {
      sketch.op("aten::mm", us(at + k * 150), us(20));
      sketch.runtime("cudaLaunchKernel", us(at + k * 150 + 5), us(5), {.correlation = ++id});
      sketch.kernel("gemm", us(at + k * 150 + 12), us(100), {.correlation = id});
    }
  }
  return sketch;
}

// The bare step begins at 3000. The GPU waits until 3010 for its first launch, five times from 112
// us after a launch until 160, and from 3862 until the next step: 10 + 5 x 48 + 138 us, over three
// steady steps.
TEST(OutsideGraphsTest, SpeaksOfAStepWithoutReplay) {
  const auto finding = find_by_rule(stepped(3).trace(), "outside-graphs");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
  EXPECT_EQ(finding->verdict.values[1].integer, 3);
  EXPECT_EQ(finding->verdict.values[2].integer, us(388));
  EXPECT_EQ(finding->at_stake_ns, us(388) / 3);
}

// The same step with its launches queued ahead: 1 us apart, for kernels of 160 us each.
TEST(OutsideGraphsTest, SaysNothingOfWaitsWhereThereAreNone) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 1; i <= 4; ++i) {
    const std::int64_t at = i * 1000, launched = 900 + i * 10;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(launched), us(10));
    if (i != 3) sketch.runtime("cudaGraphLaunch", us(launched), us(1), {.correlation = ++id});
    for (int k = 0; k < 6; ++k) {
      if (i == 3)
        sketch.runtime("cudaLaunchKernel", us(launched + k), us(1), {.correlation = ++id});
      sketch.kernel("gemm", us(at) + k * 1'000'000 / 6, 1'000'000 / 6, {.correlation = id});
    }
  }
  const auto finding = find_by_rule(sketch.trace(), "outside-graphs");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 0);
  EXPECT_EQ(finding->verdict.values.size(), 2u);
  EXPECT_THAT(finding->verdict.pattern, ::testing::Not(::testing::HasSubstr("waited")));
}

TEST(OutsideGraphsTest, IsQuietWhenEveryStepReplays) {
  EXPECT_FALSE(find_by_rule(stepped(0).trace(), "outside-graphs"));
}

TEST(OutsideGraphsTest, IsQuietWithoutGraphs) {
  EXPECT_FALSE(find_by_rule(small_steps(false, false).trace(), "outside-graphs"));
}

TEST(CollapsedGraphTest, BorrowsTheOperatorsOfAnEagerStep) {
  const auto finding = find_by_rule(stepped(3).trace(), "collapsed-graph");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kTrust);
  EXPECT_EQ(finding->verdict.values[0].integer, 18);
  EXPECT_EQ(finding->verdict.values[1].integer, 24);
  EXPECT_DOUBLE_EQ(finding->arithmetic[0].values[0].real, 1.0);
  EXPECT_EQ(finding->evidence[0].text.values[3].text, "aten::mm");
}

TEST(CollapsedGraphTest, SaysSoWhenThereIsNoOperatorToBorrow) {
  const auto finding = find_by_rule(replays(1000).trace(), "collapsed-graph");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->arithmetic[0].pattern, ::testing::StartsWith("no operator"));
}

TEST(CollapsedGraphTest, IsQuietWhenFewKernelsAreReplayed) {
  Sketch sketch = replays(1000, 1);
  for (int i = 0; i < 20; ++i) {
    sketch.runtime("cudaLaunchKernel", us(2000 + i * 20), us(5), {.correlation = 100 + i});
    sketch.kernel("gemm", us(2010 + i * 20), us(10), {.correlation = 100 + i});
  }
  EXPECT_FALSE(find_by_rule(sketch.trace(), "collapsed-graph"));
}

}  // namespace
}  // namespace lanescope::explain
