#include "lanescope/analysis/step_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Sketch;

// A step of the CPU: so many operators of 1 ns, and how long it takes.
struct Drawn {
  int operators = 10;
  std::int64_t length_ns = 100;
};

Trace draw(const std::vector<Drawn>& steps) {
  Sketch sketch;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    sketch.annotation("ProfilerStep#" + std::to_string(i + 4), start, steps[i].length_ns);
    for (int k = 0; k < steps[i].operators; ++k) sketch.op("aten::add", start + 2 * k, 1);
    start += steps[i].length_ns;
  }
  return sketch.trace();
}

Result<StepSelection> select(const Trace& trace, const StepOptions& options = {}) {
  const LaunchLinks links = compute_launch_links(trace);
  const Steps steps = find_steps(trace, links);
  const KernelLaunches launches = find_kernel_launches(trace, links);
  std::vector<Window> windows;
  for (const StepRange& step : steps.steps) windows.push_back({step.cpu_start_ns, step.cpu_end_ns});
  return select_steps({trace, steps, launches, nullptr, windows}, options);
}

// Steps 4 to 10. The first is start-up. 600 of step 7 are more than the 400 of the other four. The
// last one has 4 operators, fewer than half of 10.
TEST(StepSelectionTest, EachStepIsSteadyOrLeftOutForOneReason) {
  const Trace trace =
      draw({{10, 100}, {10, 100}, {10, 100}, {10, 600}, {10, 100}, {10, 100}, {4, 100}});
  const auto selection = select(trace);
  ASSERT_TRUE(selection);
  EXPECT_THAT(selection->steady, ElementsAre(1, 2, 4, 5));
  ASSERT_EQ(selection->left_out.size(), 3u);
  EXPECT_EQ(selection->reason(0), LeftOutReason::kStartUp);
  EXPECT_EQ(selection->reason(1), std::nullopt);
  EXPECT_EQ(selection->reason(3), LeftOutReason::kLong);
  EXPECT_EQ(selection->reason(6), LeftOutReason::kCut);
  EXPECT_EQ(selection->long_step, 3u);
  EXPECT_THAT(selection->cut(), ElementsAre(6));
  EXPECT_THAT(selection->later(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_FALSE(selection->one_chosen);
}

// Three workers finish at once: steps 4 and 7 wait for their batches, steps 5, 6 and 8 for none. Where
// only step 7 waits, it is like any other long step.
TEST(StepSelectionTest, AStepThatWaitsForWorkersInTurnIsNotLeftOut) {
  const auto draw_waits = [](std::int64_t first, std::int64_t fourth) {
    Sketch sketch;
    std::int64_t start = 0;
    for (const std::int64_t wait :
         {first, std::int64_t{1}, std::int64_t{1}, fourth, std::int64_t{1}, std::int64_t{1}}) {
      sketch.annotation("ProfilerStep#" + std::to_string(start), start, wait + 100);
      sketch.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start,
                        wait);
      for (int k = 0; k < 10; ++k) sketch.op("aten::add", start + wait + 2 * k, 1);
      start += wait + 100;
    }
    return sketch.trace();
  };
  const Trace in_turn = draw_waits(900, 900), once = draw_waits(1, 900);
  const auto selection = select(in_turn), other = select(once);
  ASSERT_TRUE(selection && other);
  EXPECT_EQ(selection->long_step, std::nullopt);
  EXPECT_EQ(other->long_step, 3u);
}

// 27, 502, 29, 515: every second step is long, so two of the three steady ones are a turn. The first is no start-up then. Of four
// steady steps nothing is left over. Limits hold for every step.
TEST(StepSelectionTest, StepsInTurnsAreMeasuredInWholeTurns) {
  const Trace odd = draw({{10, 27}, {10, 502}, {10, 29}, {10, 515}});
  const auto selection = select(odd);
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->turn, 2u);
  EXPECT_EQ(selection->turns_seen, 2u);
  EXPECT_THAT(selection->steady, ElementsAre(1, 2));
  EXPECT_THAT(selection->left_out_for(LeftOutReason::kInTurn), ElementsAre(3));
  EXPECT_THAT(select(odd, {.step = {}, .count_long_step = true})->steady, ElementsAre(1, 2, 3));
  const Trace even = draw({{10, 200}, {10, 500}, {10, 100}, {10, 500}, {10, 100}});
  EXPECT_EQ(select(even)->turn, 2u);
  EXPECT_THAT(select(even)->steady, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(select(even)->turns_seen, 2u);
  // With the first step three turns.
  const Trace long_enough =
      draw({{10, 101}, {10, 500}, {10, 100}, {10, 501}, {10, 100}, {10, 500}});
  EXPECT_EQ(select(long_enough)->turn, 2u);
  EXPECT_EQ(select(long_enough)->turns_seen, 3u);
  EXPECT_THAT(select(long_enough)->steady, ElementsAre(1, 2, 3, 4));
  // Two of five steady steps remain beyond a turn of three.
  const Trace three = draw({{10, 100}, {10, 100}, {10, 400}, {10, 100}, {10, 101}, {10, 404}});
  EXPECT_EQ(select(three)->turn, 3u);
  EXPECT_THAT(select(three)->steady, ElementsAre(1, 2, 3));
}

// Long, short, and then neither; one turn alone; steps without length; lengths that differ by less than half; a first step that may be start-up; and six
// steady steps, whose mean is near enough.
TEST(StepSelectionTest, UnevenStepsAreNoTurns) {
  EXPECT_EQ(select(draw({{10, 27}, {10, 502}, {10, 29}, {10, 250}}))->turn, 0u);
  EXPECT_EQ(select(draw({{10, 500}, {10, 30}, {10, 500}}))->turn, 0u);
  EXPECT_EQ(select(draw({{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}))->turn, 0u);
  EXPECT_EQ(select(draw({{10, 100}, {10, 140}, {10, 100}, {10, 140}}))->turn, 0u);
  EXPECT_EQ(select(draw({{10, 500}, {10, 30}, {10, 490}, {10, 31}}))->turn, 0u);
  const Trace six =
      draw({{10, 200}, {10, 500}, {10, 100}, {10, 500}, {10, 100}, {10, 500}, {10, 100}});
  EXPECT_EQ(select(six)->turn, 0u);
}

TEST(StepSelectionTest, LimitsCountALongStepToo) {
  const Trace trace = draw({{10, 100}, {10, 100}, {10, 100}, {10, 600}, {10, 100}, {10, 100}});
  const auto selection = select(trace, {.step = {}, .count_long_step = true});
  ASSERT_TRUE(selection);
  EXPECT_THAT(selection->steady, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(selection->long_step, std::nullopt);
}

// 400 are not longer than the other four together, and of three steps none is left out.
TEST(StepSelectionTest, AsLongAsTheOthersTogetherIsNotLong) {
  const Trace equal = draw({{10, 100}, {10, 100}, {10, 100}, {10, 400}, {10, 100}, {10, 100}});
  EXPECT_EQ(select(equal)->long_step, std::nullopt);
  const Trace few = draw({{10, 100}, {10, 100}, {10, 900}, {10, 100}});
  EXPECT_EQ(select(few)->long_step, std::nullopt);
}

TEST(StepSelectionTest, AChosenStepIsTheOnlyOne) {
  const Trace trace = draw({{10, 100}, {10, 100}, {10, 100}, {10, 600}, {10, 100}, {2, 100}});
  for (const std::size_t step : {0u, 3u, 5u}) {  // start-up, long, cut
    const auto selection = select(trace, {.step = static_cast<std::int64_t>(step) + 4});
    ASSERT_TRUE(selection);
    EXPECT_TRUE(selection->one_chosen);
    EXPECT_THAT(selection->steady, ElementsAre(step));
    ASSERT_EQ(selection->left_out.size(), 5u);
    for (const LeftOutStep& each : selection->left_out)
      EXPECT_EQ(each.reason, LeftOutReason::kNotChosen);
  }
  const auto none = select(trace, {.step = 10});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "expected a step from 4 to 9, found 10");
}

TEST(StepSelectionTest, AnUnmarkedTraceIsOneRecording) {
  const Trace trace = Sketch().op("aten::add", 0, 5).trace();
  const auto selection = select(trace);
  ASSERT_TRUE(selection);
  EXPECT_THAT(selection->steady, ElementsAre(0));
  EXPECT_THAT(selection->left_out, IsEmpty());
  EXPECT_EQ(select(trace, {.step = 1}).error().message,
            "expected a step's number, but the trace marks no steps");
}

TEST(StepSelectionTest, AnEmptyTraceHasNoStep) {
  const Trace trace = Sketch().trace();
  EXPECT_THAT(select(trace)->steady, IsEmpty());
}

}  // namespace
}  // namespace lanescope::analysis
