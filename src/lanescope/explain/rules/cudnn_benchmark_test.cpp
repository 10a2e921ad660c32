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

}  // namespace
}  // namespace lanescope::explain
