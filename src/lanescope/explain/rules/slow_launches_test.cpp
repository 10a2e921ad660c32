#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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

// Threads launch the kernels "k0" to "k9" in turn: 30 calls of each thread alone, then 200 together,
// of which the first one waits for none.
struct Launchers {
  std::int64_t threads = 4;
  std::int64_t alone_us = 10, together_us = 60;
  bool own_kernels = false;  // each thread has its own
};
Trace launch_from_threads(const Launchers& drawn) {
  testing::Sketch sketch;
  std::int64_t correlation = 0, gpu_us = 0;
  const auto launch = [&](std::int64_t thread, std::int64_t at_us, std::int64_t call_us) {
    const std::string name = "k" + std::to_string(correlation % 10) +
                             (drawn.own_kernels ? "of" + std::to_string(thread) : "");
    sketch.runtime("cudaLaunchKernel", us(at_us), us(call_us),
                   {.tid = 100 + thread, .correlation = ++correlation});
    gpu_us = std::max(gpu_us, at_us + call_us + 1);
    sketch.kernel(name, us(gpu_us), us(2), {.correlation = correlation});
    gpu_us += 2;
  };
  std::int64_t now_us = 1000;
  for (std::int64_t thread = 0; thread < drawn.threads; ++thread)
    for (int k = 0; k < 30; ++k, now_us += drawn.alone_us + 5)
      launch(thread, now_us, drawn.alone_us);
  for (int k = 0; k < 200; ++k, now_us += drawn.together_us + 5)
    for (std::int64_t thread = 0; thread < drawn.threads; ++thread)
      launch(thread, now_us + thread, thread == 0 ? drawn.alone_us : drawn.together_us);
  return sketch.trace();
}

TEST(SlowLaunchesTest, NamesThreadsThatWaitForEachOther) {
  const auto finding = find_by_rule(launch_from_threads({}), "slow-launches");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 4);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 60'000);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 10'000);
  EXPECT_LE(finding->at_stake_ratio, 1);
  EXPECT_NE(finding->action.pattern.find("one batch"), std::string::npos);
  EXPECT_EQ(finding->try_next.front().find("CPU"), std::string::npos);
}

// A batch can hold only what the threads have in common.
TEST(SlowLaunchesTest, AdvisesNoBatchForThreadsWithKernelsOfTheirOwn) {
  const auto finding = find_by_rule(launch_from_threads({.own_kernels = true}), "slow-launches");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 4);
  EXPECT_EQ(finding->action.pattern.find("batch"), std::string::npos);
  EXPECT_TRUE(finding->explains.empty());
}

// A slow CPU: the calls take as long when no other thread launches. And one thread waits for none.
TEST(SlowLaunchesTest, BlamesTheCpuWhereCallsAreSlowAloneToo) {
  for (const Launchers& drawn :
       {Launchers{.alone_us = 50}, Launchers{.threads = 1, .alone_us = 50}}) {
    const auto finding = find_by_rule(launch_from_threads(drawn), "slow-launches");
    ASSERT_TRUE(finding);
    EXPECT_NE(finding->action.pattern.find("Check the CPU"), std::string::npos);
  }
}

}  // namespace
}  // namespace lanescope::explain
