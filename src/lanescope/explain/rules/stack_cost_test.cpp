#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

ProgramSketch with_frames(int frames, int ops) {
  ProgramSketch program = loop(3, 4, {.us = 50});
  for (int i = 0; i < frames; ++i)
    program.sketch().slice("python_function", "train.py(3): f", ProgramSketch::at(1000 + i), 500);
  for (int i = 0; i < ops; ++i) program.sketch().op("aten::add", ProgramSketch::at(1000 + i), 400);
  return program;
}

// 1000 frames besides 3 steps and 24 operators and calls.
TEST(StackCostTest, SpeaksWhenMostEventsAreFrames) {
  const auto finding = find_by_rule(with_frames(1000, 0).trace(), "stack-cost");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1000);
  EXPECT_EQ(finding->verdict.values[1].integer, 1027);
}

TEST(StackCostTest, IsQuietWhenTheyAreFewOrAMinority) {
  EXPECT_FALSE(find_by_rule(with_frames(999, 0).trace(), "stack-cost"));
  EXPECT_FALSE(find_by_rule(with_frames(1000, 1000).trace(), "stack-cost"));
}

}  // namespace
}  // namespace lanescope::explain
