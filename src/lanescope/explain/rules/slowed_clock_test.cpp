#include <gtest/gtest.h>

#include "lanescope/explain/rules/drawn_hardware_test.h"

namespace lanescope::explain {
namespace {

constexpr std::int64_t kSlow = 10'000;  // us between samples of the clocks

// Four steps of 50 ms; the first does not count.
Trace draw_slowed_clock(double clock, double by_power, double by_heat,
                        std::int64_t kernel_us = 50'000) {
  testing::ProgramSketch program = busy_program(kernel_us);
  return with_hardware(
      program,
      {constant("SM clock", "MHz", clock, kSlow),
       constant("slowed by power limit", "0/1", by_power, kSlow),
       constant("slowed by heat", "0/1", by_heat, kSlow), constant("power", "W", 690, kSlow),
       constant("temperature", "C", 71, kSlow)},
      R"("highest_sm_clock_mhz": 1980, "power_limit_watts": 700)");
}

// 1485 of 1980 MHz: a quarter of 50 ms.
TEST(SlowedClockTest, ThePowerLimitHoldsTheClockDown) {
  const auto finding = find_by_rule(draw_slowed_clock(1485, 1, 0), "slowed-clock");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->verdict.pattern.find("power limit"), std::string::npos);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 1485);
  EXPECT_EQ(finding->verdict.values.at(3).integer, 1980);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), us(12'500), us(10));
  EXPECT_GE(finding->sample_count, 5u);
}

// NVML says 1700 MHz. The SMs counted 1386 of 1980 MHz: 30 % of 50 ms.
TEST(SlowedClockTest, TheClockThatTheSmsCountedDecides) {
  testing::ProgramSketch program = busy_program(50'000);
  const Trace trace = with_hardware(
      program,
      {constant("SM clock", "MHz", 1700, kSlow), constant("slowed by power limit", "0/1", 1, kSlow),
       constant("SM clock counted", "MHz", 1386, 100)},
      R"("highest_sm_clock_mhz": 1980)");
  const auto finding = find_by_rule(trace, "slowed-clock");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 1386);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), us(15'000), us(10));
  EXPECT_EQ(finding->arithmetic.at(1).values.at(0).integer, 1700);
}

TEST(SlowedClockTest, HeatIsNamed) {
  const auto finding = find_by_rule(draw_slowed_clock(1485, 0, 1), "slowed-clock");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->verdict.pattern.find("too hot"), std::string::npos);
}

TEST(SlowedClockTest, ALowClockWithoutAReasonHasNone) {
  const auto finding = find_by_rule(draw_slowed_clock(1200, 0, 0), "slowed-clock");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->verdict.pattern.find("neither power nor heat"), std::string::npos);
}

TEST(SlowedClockTest, IsQuietAtAUsualClock) {
  EXPECT_EQ(state_of_rule(draw_slowed_clock(1755, 0, 0), "slowed-clock"), RuleRun::State::kQuiet);
}

// The power limit is named now and then at the highest clocks too: 1952 of 1980 MHz is 98.6 %.
TEST(SlowedClockTest, IsQuietAboutAReasonThatCostsNearlyNothing) {
  EXPECT_EQ(state_of_rule(draw_slowed_clock(1952, 1, 0), "slowed-clock"), RuleRun::State::kQuiet);
  EXPECT_TRUE(find_by_rule(draw_slowed_clock(1919, 1, 0), "slowed-clock"));  // 96.9 %
}

TEST(SlowedClockTest, SaysNothingOnFewSamples) {
  EXPECT_EQ(state_of_rule(draw_slowed_clock(1485, 1, 0, 10'000), "slowed-clock"),
            RuleRun::State::kNotChecked);
}

// An idle GPU lowers its clock: those samples do not count.
TEST(SlowedClockTest, AnIdleGpuMayLowerItsClock) {
  testing::ProgramSketch program = loop(4, 1, {.us = 100}, 100'000);
  const Trace trace = with_hardware(program, {constant("SM clock", "MHz", 345, kSlow)},
                                    R"("highest_sm_clock_mhz": 1980)");
  EXPECT_FALSE(find_by_rule(trace, "slowed-clock"));
}

}  // namespace
}  // namespace lanescope::explain
