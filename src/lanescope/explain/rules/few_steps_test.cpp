#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(FewStepsTest, SpeaksOfOneStepAndOfTwoThatDisagree) {
  EXPECT_TRUE(find_by_rule(loop(1, 4, {.us = 50}).trace(), "few-steps"));
  EXPECT_TRUE(find_by_rule(loop(2, 4, {.us = 50}).trace(), "few-steps"));
  ProgramSketch program = loop(2, 4, {.us = 50});
  program.step();
  for (int k = 0; k < 8; ++k) program.launch({.us = 50});
  EXPECT_TRUE(find_by_rule(program.end().trace(), "few-steps"));
}

// 200, 600, 200 and 600 us seem to come in turns, of which one is measured. Of 200, 600, 200, 600, 200 us two are.
TEST(FewStepsTest, SpeaksOfOneTurn) {
  const auto found = [](int steps) {
    ProgramSketch program;
    for (int step = 0; step < steps; ++step) {
      program.step();
      for (int k = 0; k < (step % 2 == 0 ? 4 : 12); ++k) program.launch({.us = 50});
      program.wait().end();
    }
    return find_by_rule(program.trace(), "few-steps");
  };
  const auto one = found(4);
  ASSERT_TRUE(one);
  EXPECT_NE(one->verdict.pattern.find("seem to alternate"), std::string::npos);
  EXPECT_FALSE(found(5));
}

TEST(FewStepsTest, IsQuietWhenTwoAgreeAndWithoutMarks) {
  EXPECT_FALSE(find_by_rule(loop(3, 4, {.us = 50}).trace(), "few-steps"));
  ProgramSketch unmarked;
  for (int k = 0; k < 10; ++k) unmarked.launch({.us = 10});
  EXPECT_FALSE(find_by_rule(unmarked.trace(), "few-steps"));
}

}  // namespace
}  // namespace lanescope::explain
