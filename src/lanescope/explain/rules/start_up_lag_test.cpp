#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

ProgramSketch with_request(std::int64_t request_us, std::int64_t cpu_us) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) {
    program.step().pass(cpu_us);
    if (i == 0) program.overhead("Activity Buffer Request", request_us);
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  return program;
}

// The first step begins, the request takes 2000 us, and 9 us later the first work begins.
TEST(StartUpLagTest, SpeaksOfTheRequestBeforeTheFirstWork) {
  const auto finding = find_by_rule(with_request(2000, 0).trace(), "start-up-lag");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 2'009'000);
  EXPECT_EQ(finding->verdict.values[1].integer, 2'000'000);
}

// The request is the profiler's only gap, and nearly all that the first step takes longer: one
// finding says it.
TEST(StartUpLagTest, StandsForTheProfilersGapAndTheSlowFirstStep) {
  const Trace trace = with_request(2000, 0).trace();
  const auto explanation = run_rules(*gather_facts(trace));
  ASSERT_TRUE(explanation);
  std::size_t covered = 0;
  for (const RuleRun& run : explanation->runs)
    if (std::string_view(run.id) == "profiler-stall" ||
        std::string_view(run.id) == "slow-first-step") {
      EXPECT_EQ(run.state, RuleRun::State::kCovered) << run.id;
      EXPECT_EQ(run.covered_by, "start-up-lag");
      ++covered;
    }
  EXPECT_EQ(covered, 2u);
}

TEST(StartUpLagTest, IsQuietWhenItIsShortOrTheProgramWasLateItself) {
  EXPECT_FALSE(find_by_rule(with_request(200, 0).trace(), "start-up-lag"));
  EXPECT_FALSE(find_by_rule(with_request(2000, 5000).trace(), "start-up-lag"));
}

TEST(StartUpLagTest, IsQuietWhenEarlierWorkFillsTheLane) {
  ProgramSketch program = with_request(2000, 0);
  program.sketch().kernel("gemm", ProgramSketch::at(1001), ProgramSketch::at(100));
  EXPECT_FALSE(find_by_rule(program.trace(), "start-up-lag"));
}

}  // namespace
}  // namespace lanescope::explain
