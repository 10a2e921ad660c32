#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Calls of 30 us for work of 5: of each call the 22 us above the usual 8 count. Sixty a step.
TEST(SlowLaunchesTest, SpeaksWhenCallsAreSlowInTheMedian) {
  const auto finding = find_by_rule(loop(3, 60, {.us = 5, .call_us = 30}).trace(), "slow-launches");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 30'000);
  EXPECT_EQ(finding->at_stake_ns, 60 * 22'000);
}

// Two of sixty calls a step take 400 us, a hundred times the median; of which the profiler may have
// spent some on its own.
ProgramSketch with_slow_calls(std::int64_t profiler_us) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) {
    program.step();
    for (int k = 0; k < 60; ++k) {
      const bool slow = k % 30 == 7;
      if (slow && profiler_us > 0)
        program.sketch().overhead("Activity Buffer Request",
                                  ProgramSketch::at(program.cpu_us() + 5),
                                  ProgramSketch::at(profiler_us));
      program.launch({.us = 5, .call_us = slow ? 400 : 4});
    }
    program.end();
  }
  return program;
}

TEST(SlowLaunchesTest, SpeaksOfAFewVerySlowCalls) {
  const auto finding = find_by_rule(with_slow_calls(0).trace(), "slow-launches");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 4);
  EXPECT_EQ(finding->at_stake_ns, 2 * 396'000);
}

// 390 of the 400 us are a buffer that the profiler asked for.
TEST(SlowLaunchesTest, TheProfilersOwnWorkIsNoPartOfACall) {
  EXPECT_FALSE(find_by_rule(with_slow_calls(390).trace(), "slow-launches"));
}

TEST(SlowLaunchesTest, IsQuietWhenTheGpuIsBusyMeanwhileOrCallsAreUsual) {
  EXPECT_FALSE(find_by_rule(loop(3, 60, {.us = 40, .call_us = 30}).trace(), "slow-launches"));
  EXPECT_FALSE(find_by_rule(loop(3, 60, {.us = 5, .call_us = 8}).trace(), "slow-launches"));
}

// The first launch of a kernel loads it.
TEST(SlowLaunchesTest, IsQuietAboutFirstUses) {
  ProgramSketch program = loop(2, 60, {.us = 5});
  program.step();
  for (const char* first : {"a", "b", "c"})
    program.launch({.name = first, .us = 5, .call_us = 900});
  for (int k = 0; k < 60; ++k) program.launch({.us = 5});
  EXPECT_FALSE(find_by_rule(program.end().trace(), "slow-launches"));
}

}  // namespace
}  // namespace lanescope::explain
