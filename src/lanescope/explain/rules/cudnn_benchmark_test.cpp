#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

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

// Calls of one weight whose two kinds of kernels are timed by events, with inputs of so many widths.
Trace draw_timed(int widths, const char* wait) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 0; i < 6; ++i) {
    const std::int64_t at = i * 5000;
    sketch.op(
        "aten::cudnn_convolution", us(at), us(2000),
        {.input_dims = "[[1, 64, 16, " + std::to_string(100 + i % widths) + "], [64, 64, 3, 3]]",
         .input_types = R"(["float", "float"])"});
    for (int k = 0; k < 2; ++k) {
      sketch.runtime("cudaLaunchKernel", us(at + 10 + k * 200), us(5), {.correlation = ++id});
      sketch.kernel("convolve_" + std::to_string(k), us(at + 20 + k * 200), us(150),
                    {.correlation = id});
    }
    sketch.runtime(wait, us(at + 500), us(100), {});
  }
  return sketch.trace();
}

TEST(CudnnBenchmarkTest, TrialsForEachNewSizeAreACost) {
  const auto finding = find_by_rule(draw_timed(3, "cudaEventSynchronize"), "cudnn-benchmark");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 6);
  EXPECT_NE(finding->brief.pattern.find("anew for each of {} sizes"), std::string::npos);
  EXPECT_EQ(finding->brief.values.at(0).integer, 3);
  // Two sizes may be those of training and of the last batch; without events two kinds are usual.
  const auto once = find_by_rule(draw_timed(2, "cudaEventSynchronize"), "cudnn-benchmark");
  ASSERT_TRUE(once);
  EXPECT_EQ(once->kind, FindingKind::kOnce);
  EXPECT_FALSE(find_by_rule(draw_timed(3, "cudaStreamSynchronize"), "cudnn-benchmark"));
}

// Four steps of four convolutions. In the steps from `first` to `last`, the first call tries eight kernels of 150 us.
Trace draw_trials_in_steps(int first, int last) {
  testing::ProgramSketch program;
  int step = 0;
  program.steps(4, [&](testing::ProgramSketch& p) {
    const bool tries = step >= first && step <= last;
    ++step;
    for (int call = 0; call < 4; ++call) {
      p.begin_op("aten::cudnn_convolution");
      if (tries && call == 0) p.pass(30'000);
      for (int k = 0; k < (tries && call == 0 ? 8 : 1); ++k)
        p.kernel("convolve_" + std::to_string(k), 150);
      p.end();
    }
    p.wait();
  });
  return program.trace();
}

std::string headline_of_trials(const Trace& trace) {
  const auto facts = gather_facts(trace);
  if (!facts) return "";
  const auto all = run_rules(*facts, {});
  return all ? all->headline.pattern : "";
}

TEST(CudnnBenchmarkTest, TrialsInEachStepCostEachStep) {
  const Trace trace = draw_trials_in_steps(0, 3);
  const auto finding = find_by_rule(trace, "cudnn-benchmark");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->brief.values[0].integer, 1);
  // 30 ms until the first launch, 2 us more, and eight kernels of 150 us.
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), us(30'000 + 8 * 150), us(10));
  EXPECT_NE(headline_of_trials(trace).find("try out or plan"), std::string::npos);
}

// The first step is left out; the last ones have no trials.
TEST(CudnnBenchmarkTest, TrialsInTheFirstStepsHappenOnce) {
  const auto finding = find_by_rule(draw_trials_in_steps(0, 1), "cudnn-benchmark");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
  EXPECT_EQ(headline_of_trials(draw_trials_in_steps(0, 1)).find("try out or plan"),
            std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain
