#include "lanescope/explain/python_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Sketch;
using ::testing::StartsWith;

std::string advice_of(const Trace& trace) {
  return advise_python_frames(trace, "look at them", "they tell");
}

TEST(PythonFramesTest, TheAdviceDependsOnWhatTheTraceLacks) {
  Sketch bare;
  EXPECT_EQ(advice_of(bare.op("aten::mm", 0, 10).trace()),
            "record with with_stack=True: they tell");
  Sketch stacks;
  const Trace only_stacks = stacks.op("aten::mm", 0, 10).metadata("with_stack", "1").trace();
  EXPECT_FALSE(has_python_frames(only_stacks));
  EXPECT_THAT(advice_of(only_stacks),
              AllOf(StartsWith("this trace has stacks and no Python frames"),
                    HasSubstr("record again with them: they tell")));
  Sketch frames;
  const Trace all = frames.op("aten::mm", 0, 10)
                        .slice("python_function", "train.py(1): step", 0, 20)
                        .metadata("with_stack", "1")
                        .trace();
  EXPECT_TRUE(has_python_frames(all));
  EXPECT_EQ(advice_of(all), "look at them");
}

// Steps of 1000 us, of which an operator takes 100: most lies outside of operators.
Trace idle_steps(bool with_frames) {
  Sketch sketch;
  for (int step = 0; step < 4; ++step) {
    const std::int64_t at = step * 1'000'000;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, 1'000'000);
    sketch.op("aten::mm", at + 1'000, 100'000);
    if (with_frames) sketch.slice("python_function", "train.py(7): load", at + 200'000, 700'000);
  }
  return sketch.trace();
}

TEST(PythonFramesTest, TimeOutsideOfOperatorsIsExplainedByFramesWhereThereAreSome) {
  const auto without = find_by_rule(idle_steps(false), "cpu-time");
  ASSERT_TRUE(without);
  EXPECT_THAT(without->try_next.at(0), StartsWith("record with with_stack=True"));
  const auto with = find_by_rule(idle_steps(true), "cpu-time");
  ASSERT_TRUE(with);
  EXPECT_THAT(with->try_next.at(0),
              AllOf(HasSubstr("lanescope tree --stacks"), Not(HasSubstr("with_stack"))));
}

}  // namespace
}  // namespace lanescope::explain
