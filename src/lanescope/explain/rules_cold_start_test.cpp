// Rules about what happens once, on drawn programs. Microseconds.
#include <gmock/gmock.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using testing::Sketch;

std::int64_t us(std::int64_t value) { return value * 1000; }

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

// One Triton kernel in builds told by their registers: 5 runs of each, then 10 of the last.
Sketch tuned(int builds, bool winner_only) {
  Sketch sketch;
  TraceBuilder& builder = sketch.builder();
  std::int64_t id = 0;
  const auto run = [&](std::int64_t registers) {
    sketch.runtime("cuLaunchKernel", us(id * 50), us(5), {.correlation = id});
    const auto number = [](std::int64_t value) { return Scalar{false, value, kNone<StringId>}; };
    const auto category = builder.category("kernel");
    const auto track = builder.track(number(0), number(7), true);
    builder.args().begin();
    builder.args().add_int(builder.intern("correlation"), ArgKey::kCorrelation, id);
    builder.args().add_int(builder.intern("registers per thread"), ArgKey::kRegistersPerThread,
                           registers);
    builder.add_slice(track, category, builder.intern("triton_red_fused_sum_0"), us(id * 50 + 10),
                      us(20), builder.args().end());
    ++id;
  };
  for (int build = 0; build < builds; ++build)
    for (int k = 0; k < 5; ++k) run(32 + build);
  for (int k = 0; k < 10; ++k) run(winner_only ? 32 + builds - 1 : 32 + k % builds);
  return sketch;
}

// Three losers and the winner, five runs of 20 us each, before the winner runs alone.
TEST(TritonAutotuneTest, SpeaksOfBuildsTriedAndOneKept) {
  const auto finding = find_by_rule(tuned(4, true).trace(), "triton-autotune");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 15);  // the winner's runs cannot be told apart
  EXPECT_EQ(finding->at_stake_ns, us(15 * 20));
}

TEST(TritonAutotuneTest, IsQuietWhenSeveralBuildsStayInUse) {
  EXPECT_FALSE(find_by_rule(tuned(4, false).trace(), "triton-autotune"));
  EXPECT_FALSE(find_by_rule(tuned(2, true).trace(), "triton-autotune"));
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
