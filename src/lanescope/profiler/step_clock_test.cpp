#include "lanescope/profiler/step_clock.h"

#include <gtest/gtest.h>

namespace lanescope {
namespace {

TEST(StepClockTest, AStepIsJudgedByTheMedianOfUpTo64StepsBeforeIt) {
  StepClock clock(2);
  for (const int ns : {10, 90, 20, 80, 30, 70, 40}) EXPECT_FALSE(clock.ended(ns));
  EXPECT_FALSE(clock.ended(1000)) << "only 7 steps are known";
  // Of 10 20 30 40 70 80 90 1000 the median is 55, between the two in the middle.
  EXPECT_FALSE(clock.ended(110));
  const auto slow = clock.ended(141);  // 10 20 30 40 70 80 90 110 1000
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->median_ns, 70);
  EXPECT_EQ(slow->duration_ns, 141);
  EXPECT_EQ(slow->steps, 9u);
  for (int i = 0; i < 64; ++i) clock.ended(500);  // all others are forgotten
  EXPECT_FALSE(clock.ended(1000));
  EXPECT_TRUE(clock.ended(1001));
}

TEST(StepClockTest, TheMedianOfAnEvenNumberIsTheMeanOfTheTwoInTheMiddle) {
  StepClock clock(2);
  for (const int ns : {10, 10, 10, 10, 31, 31, 31, 31}) EXPECT_FALSE(clock.ended(ns));
  const auto slow = clock.ended(41);  // twice (10 + 31) / 2, rounded down
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->median_ns, 20);
  EXPECT_EQ(slow->steps, 8u);
}

}  // namespace
}  // namespace lanescope
