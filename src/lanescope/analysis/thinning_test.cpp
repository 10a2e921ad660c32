#include "lanescope/analysis/thinning.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

// A trace from 0 to 1000 ns.
Trace thinned(std::string_view list) {
  Sketch sketch;
  sketch.op("aten::add", 0, 1000).metadata("record_shapes", "1").metadata("with_stack", "1");
  return std::move(sketch.metadata("lanescope_thinned", list)).trace();
}

TEST(ThinningTest, EachLevelLeavesOutWhatTheOnesBeforeDo) {
  const auto found =
      find_thinning(thinned(R"([{"from_ns": 100, "to_ns": 300, "level": 1, "what": "input shapes"},
                  {"from_ns": 300, "to_ns": 400, "level": 2, "what": "stacks"},
                  {"from_ns": 400, "to_ns": 450, "level": 3, "what": "short operators",
                   "shorter_than_ns": 20},
                  {"from_ns": 450, "to_ns": null, "level": 4, "what": "operators", "paused_ns": 100,
                   "pause_count": 2, "pauses": [[450, 550], [900, null]]}])"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->without_inputs_ns, 900);
  EXPECT_EQ(found->without_stacks_ns, 700);
  EXPECT_EQ(found->without_short_operators_ns, 50);
  EXPECT_EQ(found->short_ns, 20);
  EXPECT_EQ(found->operators_in_parts_ns, 550);
  EXPECT_EQ(found->paused_ns, 200);
  EXPECT_EQ(found->pause_count, 2u);
}

TEST(ThinningTest, TheLastLevelAlsoLeavesOutRangesOfTheProgramInItsPauses) {
  const auto found = find_thinning(
      thinned(R"([{"from_ns": 100, "to_ns": 300, "level": 4, "what": "operators", "paused_ns": 80,
                   "pause_count": 1, "pauses": [[220, 300]]},
                  {"from_ns": 300, "to_ns": null, "level": 5, "what": "operators and ranges",
                   "paused_ns": 500, "pause_count": 1, "pauses": [[300, 800]]}])"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->operators_in_parts_ns, 900);
  EXPECT_EQ(found->paused_ns, 580);
  EXPECT_EQ(found->ranges_paused_ns, 500);
}

TEST(ThinningTest, WhatIsNotInTheTraceDoesNotCount) {
  EXPECT_FALSE(find_thinning(thinned(R"([{"from_ns": -500, "to_ns": 0, "level": 3}])")));
  const auto found = find_thinning(
      thinned(R"([{"from_ns": -500, "to_ns": 200, "level": 3, "paused_ns": 600, "pause_count": 2,
                   "pauses": [[-500, 0], [50, 150]]}])"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->operators_in_parts_ns, 200);
  EXPECT_EQ(found->paused_ns, 100);
}

TEST(ThinningTest, ALongListOfPausesIsCutAndTheirSumIsKept) {
  const auto found = find_thinning(
      thinned(R"([{"from_ns": 0, "to_ns": 900, "level": 3, "paused_ns": 600, "pause_count": 9,
                   "pauses": [[0, 100]]}])"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->paused_ns, 600);
}

TEST(ThinningTest, AllocationsEndAndDoNotComeBack) {
  const auto found =
      find_thinning(thinned(R"([{"from_ns": 250, "to_ns": null, "what": "allocations"}])"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->memory_end_ns, 250);
  EXPECT_EQ(found->with_memory_ns, 250);
  // Before the window: none of it has them. After it: all of it.
  const auto before =
      find_thinning(thinned(R"([{"from_ns": -250, "to_ns": null, "what": "allocations"}])"));
  ASSERT_TRUE(before);
  EXPECT_EQ(before->with_memory_ns, 0);
  EXPECT_FALSE(
      find_thinning(thinned(R"([{"from_ns": 1000, "to_ns": null, "what": "allocations"}])")));
}

TEST(ThinningTest, ShapesThatNobodyAskedForAreNotMissing) {
  Sketch sketch;
  sketch.op("aten::add", 0, 1000)
      .metadata("lanescope_thinned", R"([{"from_ns": 0, "to_ns": 10, "level": 2}])");
  EXPECT_FALSE(find_thinning(std::move(sketch).trace()));
}

TEST(ThinningTest, StrangeEntriesAreNothing) {
  for (const char* list : {"1", "{}", "[]", "[1]", R"([{"level": 3}])", R"([{"from_ns": 1}])",
                           R"([{"from_ns": "1", "to_ns": 5, "level": 3}])", "[[[]]]"})
    EXPECT_FALSE(find_thinning(thinned(list))) << list;
}

TEST(RecordingCostTest, IsWhatTheRecorderWrote) {
  Sketch sketch;
  sketch.op("aten::add", 0, 1000)
      .metadata("lanescope_cost", R"({"budget_ratio": 0.01, "share_ratio": 0.0087, "cost_ns": 1,
                                      "window_ns": 1000000, "memory_ns": 4000, "gpu_calls_ns": 1000,
                                      "left_out_operators": 12345})");
  const auto found = find_recording_cost(std::move(sketch).trace());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->budget_ratio, 0.01);
  EXPECT_EQ(found->share_ratio, 0.0087);
  EXPECT_EQ(found->always_recorded_ratio, 0.001);
  EXPECT_EQ(found->left_out_operators, 12345u);
  EXPECT_FALSE(find_recording_cost(thinned("[]")));
}

TEST(RecordingCostTest, DamagedTimesCountAsNone) {
  for (const char* rest : {"", R"(, "window_ns": 0, "gpu_calls_ns": 5)",
                           R"(, "window_ns": -5, "gpu_calls_ns": 5)", R"(, "gpu_calls_ns": "5")"}) {
    Sketch sketch;
    sketch.op("aten::add", 0, 1000)
        .metadata("lanescope_cost",
                  std::string(R"({"budget_ratio": 0.01, "share_ratio": 0.02)") + rest + "}");
    const auto found = find_recording_cost(std::move(sketch).trace());
    ASSERT_TRUE(found) << rest;
    EXPECT_EQ(found->always_recorded_ratio, 0) << rest;
  }
}

}  // namespace
}  // namespace lanescope::analysis
