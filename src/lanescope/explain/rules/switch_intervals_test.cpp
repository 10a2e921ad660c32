#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Steps of operators of 10 us, each after so many milliseconds without an event; 60 us late for each 5 ms.
Trace drawn(const std::vector<std::vector<int>>& steps) {
  ProgramSketch program;
  for (const std::vector<int>& step : steps) {
    program.step().launch({.us = 1});
    for (const int ms : step) program.pass(ms * 1'012 + 40).launch({.us = 1});
    program.end();
  }
  return program.trace();
}

TEST(SwitchIntervalsTest, IrregularMultiplesAtManyPlaces) {
  const auto finding = find_by_rule(
      drawn({{5, 10, 10, 5, 15}, {10, 5, 10, 5, 10}, {5, 5, 10, 10, 5}, {10, 10, 5, 5, 20}}),
      "switch-intervals");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 20);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 20);
  // Steps 2 to 4 are steady: 40 + 35 + 50 ms and 40 us for each of 15; a few us of each belong to the launch.
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), (125 * 1'012 + 15 * 40) * 1e3 / 3, 60'000);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("process"));
}

// time.sleep(0.005) in each round, or sleeps of 5 and 10 ms at places of their own.
TEST(SwitchIntervalsTest, SleepsAreAsLongInEachStep) {
  EXPECT_FALSE(
      find_by_rule(drawn({{5, 5, 5, 5, 5}, {5, 5, 5, 5, 5}, {5, 5, 5, 5, 5}, {5, 5, 5, 5, 5}}),
                   "switch-intervals"));
  EXPECT_FALSE(find_by_rule(
      drawn({{5, 10, 5, 10, 5}, {5, 10, 5, 10, 5}, {5, 10, 5, 10, 5}, {5, 10, 5, 10, 5}}),
      "switch-intervals"));
}

// A program that looks every 5 ms whether its batch is there.
TEST(SwitchIntervalsTest, PollingHappensAtOnePlace) {
  EXPECT_FALSE(
      find_by_rule(drawn({{5}, {10}, {5}, {15}, {10}, {10}, {5}, {15}, {5}, {10}, {5}, {5}}),
                   "switch-intervals"));
}

// Work of any length: a few of the gaps happen to be multiples.
TEST(SwitchIntervalsTest, OtherLengths) {
  EXPECT_FALSE(find_by_rule(
      drawn({{5, 7, 10, 8, 13}, {10, 9, 12, 5, 7}, {7, 5, 8, 10, 13}, {9, 10, 12, 8, 14}}),
      "switch-intervals"));
}

}  // namespace
}  // namespace lanescope::explain
