#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

// All was launched by 1.2 ms; the second piece of work begins at 500 ms.
TEST(EdgeGapTest, SpeaksOfTheGapBesideTheFirstWork) {
  testing::Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    sketch.runtime("cudaLaunchKernel", i * 10'000, 4'000, {.correlation = i + 1});
    sketch.kernel("gemm", i == 0 ? 6'000 : 500'000'000 + i * 100'000, 100'000,
                  {.correlation = i + 1});
  }
  const Trace trace = sketch.trace();
  EXPECT_TRUE(find_by_rule(trace, "edge-gap"));
  EXPECT_TRUE(find_by_rule(trace, "gpu-bound"));
  EXPECT_FALSE(find_by_rule(trace, "gpu-idle"));
}

TEST(EdgeGapTest, IsQuietWhenTheCpuWasLate) {
  testing::Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = i == 0 ? 0 : 500'000'000 + i * 100'000;
    sketch.runtime("cudaLaunchKernel", at, 4'000, {.correlation = i + 1});
    sketch.kernel("gemm", at + 6'000, 100'000, {.correlation = i + 1});
  }
  EXPECT_FALSE(find_by_rule(sketch.trace(), "edge-gap"));
}

}  // namespace
}  // namespace lanescope::explain
