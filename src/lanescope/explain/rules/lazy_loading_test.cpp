#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Twenty launches of one kernel, the first call of which takes `first_us`.
ProgramSketch first_launch(std::int64_t first_us) {
  ProgramSketch program;
  program.launch({.name = "other", .us = 5});
  program.launch({.us = 5, .call_us = first_us});
  for (int i = 0; i < 20; ++i) program.launch({.us = 5});
  return program;
}

// The GPU ends its first work at 1014 and the slow call begins at 1013.
TEST(LazyLoadingTest, SpeaksOfAFirstLaunchFarLongerThanTheLater) {
  const auto finding = find_by_rule(first_launch(500).trace(), "lazy-loading");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
  EXPECT_EQ(finding->verdict.values[0].integer, us(500));
  EXPECT_EQ(finding->at_stake_ns, us(499));
  EXPECT_EQ(finding->confidence, Confidence::kMedium);
}

TEST(LazyLoadingTest, IsQuietOnAShortOne) {
  EXPECT_FALSE(find_by_rule(first_launch(60).trace(), "lazy-loading"));
}

// Later launches of the same kernel are as slow: a full queue, not loading.
TEST(LazyLoadingTest, IsQuietWhenLaterLaunchesAreSlowToo) {
  ProgramSketch program = first_launch(500);
  program.launch({.us = 5, .call_us = 400});
  EXPECT_FALSE(find_by_rule(program.trace(), "lazy-loading"));
}

TEST(LazyLoadingTest, IsQuietWhenTheProfilerHeldTheLaunchUp) {
  ProgramSketch program = first_launch(500);
  program.sketch().overhead("Activity Buffer Request", us(1100), us(300));
  EXPECT_FALSE(find_by_rule(program.trace(), "lazy-loading"));
}

TEST(LazyLoadingTest, CountsTheDriversOwnRows) {
  ProgramSketch program = first_launch(4);
  program.sketch().overhead("Lazy Function Loading", us(5000), us(150));
  program.sketch().overhead("Lazy Function Loading", us(6000), us(250));
  const auto finding = find_by_rule(program.trace(), "lazy-loading");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, us(400));
  EXPECT_EQ(finding->confidence, Confidence::kHigh);
}

// 20 quick launches, then one of another kernel that takes 5 ms, after `busy_us` of work.
ProgramSketch lone_slow_launch(std::int64_t busy_us) {
  ProgramSketch program;
  for (int i = 0; i < 20; ++i) program.launch({.us = 1});
  program.launch({.us = busy_us});
  program.launch({.name = "rare", .us = 5, .call_us = 5000});
  return program;
}

TEST(LazyLoadingTest, ALoneLaunchOfMillisecondsCountsUnlessTheGpuWorksMeanwhile) {
  const auto finding = find_by_rule(lone_slow_launch(1).trace(), "lazy-loading");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, us(5000));
  EXPECT_FALSE(find_by_rule(lone_slow_launch(5000).trace(), "lazy-loading"));
}

TEST(LazyLoadingTest, KnowsTheCallsThatMentionAKernelFirst) {
  for (const char* call : {"cudaFuncSetAttribute", "cudaGetFuncBySymbol_v11000",
                           "cuModuleGetFunction", "cuKernelGetFunction"}) {
    ProgramSketch program = loop(3, 4, {.us = 5});
    program.call(call, 500);
    program.launch({.us = 5});
    const auto finding = find_by_rule(program.trace(), "lazy-loading");
    ASSERT_TRUE(finding) << call;
    EXPECT_EQ(finding->verdict.values[0].integer, us(500)) << call;
  }
}

}  // namespace
}  // namespace lanescope::explain
