#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using testing::Sketch;

// Runs of 20 us, one each 50 us, of kernels in builds that their registers tell apart.
class Runs {
 public:
  void run(std::int64_t registers, const char* kernel = "triton_red_fused_sum_0") {
    sketch_.runtime("cuLaunchKernelEx", us(at_), us(5), {.correlation = ++id_});
    sketch_.kernel(kernel, us(at_ + 10), us(20), {.correlation = id_, .registers = registers});
    at_ += 50;
  }
  void step() {
    if (steps_++ > 0) end_step();
    step_at_ = at_;
  }
  void end_step() {
    sketch_.annotation("ProfilerStep#" + std::to_string(steps_ - 1), us(step_at_),
                       us(at_ - step_at_));
  }
  auto trace() { return sketch_.trace(); }

 private:
  Sketch sketch_;
  std::int64_t at_ = 0, id_ = 0, step_at_ = 0;
  int steps_ = 0;
};

// 5 runs of each build, then 10 of the last.
Runs tuned(int builds, bool winner_only) {
  Runs runs;
  for (int build = 0; build < builds; ++build)
    for (int k = 0; k < 5; ++k) runs.run(32 + build);
  for (int k = 0; k < 10; ++k) runs.run(winner_only ? 32 + builds - 1 : 32 + k % builds);
  return runs;
}

// Three losers, five runs of 20 us each, before the winner runs alone. From the first's start to
// the last's end: 14 times 50 us and 20 us.
TEST(TritonAutotuneTest, SpeaksOfBuildsTriedAndOneKept) {
  const auto finding = find_by_rule(tuned(4, true).trace(), "triton-autotune");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer,
            15);  // the winner's runs look the same
  EXPECT_EQ(finding->verdict.values[1].integer, us(15 * 20));
  EXPECT_EQ(finding->at_stake_ns, us(14 * 50 + 20));
}

TEST(TritonAutotuneTest, IsQuietWhenSeveralBuildsStayInUse) {
  EXPECT_FALSE(find_by_rule(tuned(4, false).trace(), "triton-autotune"));
  EXPECT_FALSE(find_by_rule(tuned(2, true).trace(), "triton-autotune"));
}

// `tuning` of six steps time three builds, six runs each, and then use the second one once, as the
// others do.
Runs tuned_in_steps(const char* kernel, std::set<int> tuning) {
  Runs runs;
  for (int step = 0; step < 6; ++step) {
    runs.step();
    for (int build = 0; build < 3 && tuning.contains(step); ++build)
      for (int k = 0; k < 6; ++k) runs.run(32 + build, kernel);
    runs.run(33, kernel);
  }
  runs.end_step();
  return runs;
}

TEST(TritonAutotuneTest, SpeaksOfTheStepThatTunesAnyKernelOfTheDriver) {
  for (const char* kernel : {"own_gelu", "triton_red_fused_sum_0"}) {
    const auto finding = find_by_rule(tuned_in_steps(kernel, {2}).trace(), "triton-autotune");
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->verdict.values[0].integer, 18);
    EXPECT_EQ(finding->at_stake_ns, us(17 * 50 + 20));
  }
  EXPECT_EQ(
      find_by_rule(tuned_in_steps("own_gelu", {1, 4}).trace(), "triton-autotune")->at_stake_ns,
      us(2 * (17 * 50 + 20)));
}

// Two sizes are tuned in the first step and use different builds from then on.
TEST(TritonAutotuneTest, TwoSizesMayKeepABuildEach) {
  Runs runs;
  for (int step = 0; step < 4; ++step) {
    runs.step();
    for (int size = 0; size < 2 && step == 0; ++size)
      for (int build = 0; build < 3; ++build)
        for (int k = 0; k < 6; ++k) runs.run(32 + build);
    runs.run(32);
    runs.run(33);
  }
  runs.end_step();
  const auto finding = find_by_rule(runs.trace(), "triton-autotune");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer,
            37);  // all but the last run: what it keeps is 33
}

// Three lengths of rows in one step, five calls each, with as much other work between them.
TEST(TritonAutotuneTest, IsQuietWhenTheProgramWorksInBetween) {
  Runs runs;
  for (int step = 0; step < 5; ++step) {
    runs.step();
    for (int build = 0; build < 3 && step == 2; ++build)
      for (int k = 0; k < 5; ++k) {
        runs.run(32 + build, "own_norm");
        runs.run(128, "gemm_of_a_library");
      }
    runs.run(32, "own_norm");
  }
  runs.end_step();
  EXPECT_FALSE(find_by_rule(runs.trace(), "triton-autotune"));
}

// Each step runs each build: these are shapes. A template has a build for each type.
TEST(TritonAutotuneTest, IsQuietWhenEachStepDoesIt) {
  EXPECT_FALSE(
      find_by_rule(tuned_in_steps("own_gelu", {0, 1, 2, 3, 4, 5}).trace(), "triton-autotune"));
  EXPECT_FALSE(
      find_by_rule(tuned_in_steps("void gelu<float>(float*)", {2}).trace(), "triton-autotune"));
}

TEST(TritonAutotuneTest, CountsWhatRanWhileCompiling) {
  ProgramSketch program;
  program.begin("CachingAutotuner.benchmark_all_configs (dynamo_timed)");
  for (int i = 0; i < 12; ++i) program.launch({.name = "triton_poi_fused_add_0", .us = 20});
  program.end();
  for (int i = 0; i < 5; ++i) program.launch({.name = "triton_poi_fused_add_0", .us = 20});
  const auto finding = find_by_rule(program.trace(), "triton-autotune");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 12);
  EXPECT_EQ(finding->at_stake_ns, us(240));
}

}  // namespace
}  // namespace lanescope::explain
