// Rules about what happens once, on drawn programs. Microseconds.
#include <gmock/gmock.h>

#include <set>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/step_work.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using testing::Sketch;

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

ProgramSketch allocating(int first, int later, const char* around = nullptr) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    if (around) program.begin(around);
    for (int k = 0; k < (i == 0 ? first : later); ++k) program.call("cudaMalloc", 100);
    if (around) program.end();
    program.launch({.us = 50}).end();
  }
  return program;
}

TEST(FirstAllocationsTest, SpeaksWhenOnlyTheFirstStepAllocates) {
  const auto finding = find_by_rule(allocating(5, 0).trace(), "first-allocations");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 5);
  EXPECT_EQ(finding->verdict.values[1].integer, us(500));
  EXPECT_EQ(finding->verdict.values[4].text, "0 times");
  EXPECT_EQ(finding->at_stake_ns, us(500));
}

TEST(FirstAllocationsTest, LeavesBuffersOfAFirstCollectiveAlone) {
  EXPECT_TRUE(find_by_rule(allocating(5, 0, "forward").trace(), "first-allocations"));
  EXPECT_FALSE(find_by_rule(allocating(5, 0, "nccl:all_reduce").trace(), "first-allocations"));
}

TEST(FirstAllocationsTest, IsQuietWhenItGoesOn) {
  EXPECT_FALSE(find_by_rule(allocating(5, 5).trace(), "first-allocations"));
  EXPECT_FALSE(find_by_rule(allocating(1, 0).trace(), "first-allocations"));
}

// Calls of a convolution: `first` kinds of kernels in the first, one in each of four later ones.
Sketch convolutions(int first) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t at = i * 5000;
    sketch.op("aten::cudnn_convolution", us(at), us(2000));
    for (int k = 0; k < (i == 0 ? first : 1); ++k) {
      sketch.runtime("cudaLaunchKernel", us(at + 10 + k * 200), us(5), {.correlation = ++id});
      sketch.kernel("convolve_" + std::to_string(k), us(at + 20 + k * 200), us(150),
                    {.correlation = id});
    }
  }
  return sketch;
}

TEST(CudnnBenchmarkTest, SpeaksOfACallWithManyKindsOfKernels) {
  const auto finding = find_by_rule(convolutions(8).trace(), "cudnn-benchmark");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[1].integer, us(2000));  // CPU
  EXPECT_EQ(finding->verdict.values[2].integer, us(8 * 150));
  EXPECT_EQ(finding->at_stake_ns, us(2000));
}

TEST(CudnnBenchmarkTest, IsQuietOnAFewKernels) {
  EXPECT_FALSE(find_by_rule(convolutions(3).trace(), "cudnn-benchmark"));
}

// Runs of 20 us, one each 50 us, of kernels in builds told by their registers.
class Runs {
 public:
  void run(std::int64_t registers, const char* kernel = "triton_red_fused_sum_0") {
    sketch_.runtime("cuLaunchKernelEx", us(at_), us(5), {.correlation = ++id_});
    TraceBuilder& builder = sketch_.builder();
    const auto number = [](std::int64_t value) { return Scalar{false, value, kNone<StringId>}; };
    const auto category = builder.category("kernel");
    const auto track = builder.stream_track(number(0), number(7));
    builder.args().begin();
    builder.args().add_int(builder.intern("correlation"), ArgKey::kCorrelation, id_);
    builder.args().add_int(builder.intern("registers per thread"), ArgKey::kRegistersPerThread,
                           registers);
    builder.add_slice(track, category, builder.intern(kernel), us(at_ + 10), us(20),
                      builder.args().end());
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
            15);  // the winner's runs cannot be told apart
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

// Six steps of 100 us on the GPU, one launch each; before the launch of `long_step` the CPU reads a
// file for `read_us`.
ProgramSketch with_long_step(int long_step, std::int64_t read_us) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    if (i == long_step) program.cpu_op("read_file", read_us);
    program.launch({.us = 100}).wait().end();
  }
  return program;
}

// A step is 10 us of launching, 100 us of work less the 1 us that both run, and 3 us to wait.
TEST(LongStepTest, IsTakenOutOfTheNumbersOfAStep) {
  const Trace trace = with_long_step(3, 5000).trace();
  auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->steady.size(), 5u);
  const std::int64_t with_it = facts->wall.partition.wall_ns;
  leave_out_long_step(*facts);
  EXPECT_EQ(facts->steady, (std::vector<std::size_t>{1, 2, 4, 5}));
  EXPECT_EQ(facts->later_steps(), (std::vector<std::size_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(facts->long_step, 3u);
  const std::int64_t length = facts->device().windows[3].length_ns();
  EXPECT_GE(length, us(5000));
  EXPECT_EQ(facts->wall.partition.wall_ns, with_it - length);

  const auto finding = find_by_rule(trace, "long-step");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 4);  // ProfilerStep#4
  EXPECT_EQ(finding->verdict.values[1].integer, length);
  EXPECT_EQ(finding->verdict.values[2].integer, 4);
  EXPECT_EQ(finding->at_stake_ns, us(5000));
  ASSERT_EQ(finding->evidence.size(), 1u);
  EXPECT_EQ(trace.name(finding->evidence[0].slice), "read_file");
}

TEST(LongStepTest, IsNoneWhenTheOthersTakeLongerTogetherOrAreFewOrItIsTheFirst) {
  EXPECT_FALSE(find_by_rule(with_long_step(3, 200).trace(), "long-step"));
  EXPECT_FALSE(find_by_rule(with_long_step(0, 5000).trace(), "long-step"));
  ProgramSketch few;
  for (int i = 0; i < 4; ++i) {
    few.step();
    if (i == 2) few.cpu_op("read_file", 5000);
    few.launch({.us = 100}).wait().end();
  }
  const Trace trace = few.trace();
  auto facts = gather_facts(trace);
  leave_out_long_step(*facts);
  EXPECT_EQ(facts->steady.size(), 3u);
}

// Sixty kernels of 100 us in the fourth step, one in the others.
TEST(LongStepTest, TellsWhatTheGpuDidMore) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    for (int k = 0; k < (i == 3 ? 60 : 1); ++k) program.launch({.name = "validate", .us = 100});
    program.wait().end();
  }
  const Trace trace = program.trace();
  const auto finding = find_by_rule(trace, "long-step");
  ASSERT_TRUE(finding);
  const Evidence& evidence = finding->evidence.back();
  EXPECT_EQ(trace.name(evidence.slice), "validate");
  EXPECT_EQ(evidence.text.values[0].integer, us(59 * 100));
  EXPECT_EQ(evidence.text.values[2].integer, 60);
}

TEST(LongStepTest, TheChosenStepStays) {
  const Trace trace = with_long_step(3, 5000).trace();
  auto facts = gather_facts(trace, 4);
  leave_out_long_step(*facts);
  EXPECT_EQ(facts->steady, (std::vector<std::size_t>{3}));
}

// The gap before its launch is nearly all of it: lone-gap tells the cause, and the step is not told
// twice.
TEST(LongStepTest, IsCoveredByItsCause) {
  const Trace trace = with_long_step(3, 5000).trace();
  auto facts = gather_facts(trace);
  leave_out_long_step(*facts);
  const auto explanation = run_rules(*facts);
  for (const RuleRun& run : explanation->runs)
    if (std::string_view(run.id) == "long-step") {
      EXPECT_EQ(run.state, RuleRun::State::kCovered);
      EXPECT_EQ(run.covered_by, "lone-gap");
    }
  EXPECT_EQ(explanation->findings.front().rule, "lone-gap");
  EXPECT_THAT(explanation->headline.pattern, ::testing::HasSubstr("longer than the other {}"));
}

// The gap before a long step's work begins while the step before it still lasts. What lies in that
// step counts there, the rest in none of the steady ones.
TEST(LongStepTest, AGapOverItsEdgeIsCut) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    for (int k = 0; k < 3; ++k) {
      if (i == 3 && k == 0) program.pass(50'000);
      program.launch({.us = 100}).wait();
    }
    program.end();
  }
  const Trace trace = program.trace();
  auto facts = gather_facts(trace);
  std::int64_t all = 0, cut = 0;
  for (const auto& gap : facts->device().gaps.gaps) all += gap.end_ns - gap.start_ns;
  const std::size_t before = facts->device().gaps.gaps.size();
  leave_out_long_step(*facts);
  ASSERT_EQ(facts->long_step, 3u);
  const auto& gaps = facts->device().gaps;
  EXPECT_GT(gaps.gaps.size(), before);
  for (const auto& gap : gaps.gaps) {
    cut += gap.end_ns - gap.start_ns;
    std::int64_t at = gap.start_ns;
    for (const auto& part : gaps.parts_of(gap)) {
      EXPECT_EQ(part.start_ns, at);
      at = part.end_ns;
    }
    EXPECT_EQ(at, gap.end_ns);
    if (inside(facts->steady_windows, gap.start_ns)) {
      EXPECT_LT(gap.end_ns - gap.start_ns, us(50));
    }
  }
  EXPECT_EQ(cut, all);
  const auto sync = find_by_rule(trace, "host-sync");
  ASSERT_TRUE(sync);
  EXPECT_LT(sync->at_stake_ratio, 0.5);
}

// The GPU works in two of eight steps only: what is left without one of them would be nothing.
TEST(LongStepTest, StaysWhereTheOthersDoNothing) {
  ProgramSketch program;
  for (int i = 0; i < 8; ++i) {
    program.step();
    if (i == 0 || i == 4) program.launch({.us = 9000}).wait();
    program.pass(20).end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "long-step"));
}

// Loading on the CPU behind a full queue is not why the step took so long.
TEST(LongStepTest, WhatTheGpuHidesDoesNotExplainIt) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step().begin("saver");
    for (int k = 0; k < (i == 0 || i == 3 ? 60 : 1); ++k) program.launch({.us = 500});
    if (i == 3) program.cpu_op("late", 20'000);
    program.wait().end().end();
  }
  const Trace trace = program.trace();
  auto facts = gather_facts(trace);
  leave_out_long_step(*facts);
  ASSERT_EQ(facts->long_step, 3u);
  Finding finding;
  rules::explain_long_step(*facts, {facts->device().windows[3]}, {}, finding);
  ASSERT_EQ(finding.explains.size(), 1u);
  EXPECT_LT(finding.explains[0].at_stake_ns, us(100)) << "the GPU was busy in nearly all of it";
}

}  // namespace
}  // namespace lanescope::explain
