#include <gtest/gtest.h>

#include "lanescope/explain/rules/drawn_hardware_test.h"

namespace lanescope::explain {
namespace {

Trace draw_low_sm_activity(double active, std::int64_t kernel_us = 2000) {
  testing::ProgramSketch program = busy_program(kernel_us);
  return with_hardware(program, {constant("SM active", "%", active)});
}

// 2 ms of kernels a step x (1 - 0.25): 1.5 ms.
TEST(LowSmActivityTest, SmsWithoutWorkWhileKernelsRun) {
  const auto finding = find_by_rule(draw_low_sm_activity(25), "low-sm-activity");
  ASSERT_TRUE(finding);
  EXPECT_DOUBLE_EQ(finding->verdict.values.at(0).real, 0.25);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), us(1500), us(1));
  ASSERT_EQ(finding->evidence.size(), 1u);
}

TEST(LowSmActivityTest, IsQuietWhenHalfOfTheSmsWork) {
  EXPECT_EQ(state_of_rule(draw_low_sm_activity(50), "low-sm-activity"), RuleRun::State::kQuiet);
}

// Idle time is no low activity: 25 % of the samples' time is 100 % of the kernels'.
TEST(LowSmActivityTest, PausesDoNotCount) {
  testing::ProgramSketch program = loop(4, 10, {.us = 300}, 200);
  const Trace trace = with_hardware(
      program, {{"SM active", "%", [](std::int64_t us) { return us % 400 < 200 ? 90.0 : 80.0; }}});
  EXPECT_FALSE(find_by_rule(trace, "low-sm-activity"));
}

TEST(LowSmActivityTest, SaysNothingOnFewSamples) {
  EXPECT_EQ(state_of_rule(draw_low_sm_activity(25, 400), "low-sm-activity"),
            RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
