#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_cpu_loop_test.h"
#include "lanescope/explain/rules/drawn_first_step_test.h"

namespace lanescope::explain {
namespace {

TEST(SlowFirstStepTest, SpeaksAndNamesWhatTookLonger) {
  const auto finding = find_by_rule(with_first_step(400, false).trace(), "slow-first-step");
  ASSERT_TRUE(finding);
  // The others begin when the GPU is done with the step before, 4 us after the CPU began them: 100
  // us each. The first begins with the CPU: 504 us.
  EXPECT_EQ(finding->at_stake_ns, 404'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(1).text, "aten::cudnn_convolution");
}

TEST(SlowFirstStepTest, NamesTheProfilerWhenItWasTheProfiler) {
  const auto finding = find_by_rule(with_first_step(400, true).trace(), "slow-first-step");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.values.back().text, ::testing::HasSubstr("profiler"));
  EXPECT_TRUE(finding->evidence.empty());
}

TEST(SlowFirstStepTest, IsQuietAboutAFirstStepLikeTheOthers) {
  EXPECT_FALSE(find_by_rule(with_first_step(20, false).trace(), "slow-first-step"));
}

// The first step's work was launched at 10 us and began at 400: until then the GPU was busy with
// something that was launched before the recording. 100 us of it are the step's own.
TEST(SlowFirstStepTest, DoesNotCountWhatPrecedesTheFirstKernel) {
  testing::Sketch sketch;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = i * 100;
    sketch.annotation("ProfilerStep#" + std::to_string(i), us(at), us(100));
    sketch.runtime("cudaLaunchKernel", us(at + 5), us(5), {.correlation = i + 1});
    sketch.kernel("gemm", us(400 + at), us(100), {.correlation = i + 1});
  }
  EXPECT_FALSE(find_by_rule(sketch.trace(), "slow-first-step"));
}

// The queue is empty when the recording begins: 300 us pass until the first launch. The GPU is the
// limit of every step, and the other steps find work queued.
TEST(SlowFirstStepTest, IsQuietAboutTheWayToTheFirstLaunch) {
  const auto with_lead = [](std::int64_t lead_us) {
    testing::ProgramSketch program;
    for (int i = 0; i < 5; ++i) {
      program.step();
      if (i == 0) program.pass(lead_us);
      for (int k = 0; k < 4; ++k) program.launch({.us = 50});
      program.end();
    }
    return find_by_rule(program.trace(), "slow-first-step");
  };
  EXPECT_FALSE(with_lead(300));
  const auto finding = with_lead(3000);
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->arithmetic.at(0).pattern, ::testing::HasSubstr("before its first GPU work"));
}

TEST(SlowFirstStepTest, OnTheCpuTheFirstStepIsSeenToo) {
  const auto finding =
      find_by_rule(draw_cpu_loop({.steps_us = {3'000, 1'000, 1'000, 1'000}}), "slow-first-step");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 2'000 * kUs);
  EXPECT_FALSE(find_by_rule(draw_cpu_loop({}), "slow-first-step"));
}

TEST(SlowFirstStepTest, SaysOnTheFirstScreenWhatItDid) {
  const auto once = [](bool is_profiler) {
    return find_by_rule(with_first_step(400, is_profiler).trace(), "slow-first-step")
        .value_or(Finding())
        .once;
  };
  EXPECT_THAT(once(false).pattern,
              ::testing::StartsWith("Once: the first step took {}, {} times the median"));
  EXPECT_EQ(once(false).values.back().text, "aten::cudnn_convolution");
  EXPECT_EQ(once(true).pattern, "");  // the profiler's own start
}

}  // namespace
}  // namespace lanescope::explain
