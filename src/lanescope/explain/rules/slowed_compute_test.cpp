#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_collectives_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

// Gemms of one shape: three of 100 us alone, then four of `us` inside an all-reduce, in each step.
Trace at_the_same_time(std::int64_t us, bool shapes = true) {
  Sketch sketch;
  std::int64_t id = 0;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = i * 2'000'000;
    sketch.annotation("ProfilerStep#" + std::to_string(i), at, 2'000'000);
    std::int64_t gpu = at + 100'000;
    for (int k = 0; k < 7; ++k) {
      const std::int64_t cpu = at + k * 10'000, length = (k < 3 ? 100 : us) * 1000;
      sketch.op("aten::mm", cpu, 9'000, {.input_dims = shapes ? "[[64, 64], [64, 64]]" : ""});
      sketch.runtime("cudaLaunchKernel", cpu + 2'000, 4'000, {.correlation = ++id});
      if (k == 3) {
        sketch.runtime("cudaLaunchKernelExC", cpu + 9'000, 500, {.correlation = ++id});
        sketch.kernel(kNccl, gpu, 4 * us * 1000,
                      {.stream = 20, .correlation = id, .collective = "allreduce", .elements = 1});
        --id;
      }
      sketch.kernel("gemm", gpu, length, {.correlation = id});
      gpu += length;
      if (k == 3) ++id;
    }
  }
  return sketch.trace();
}

// Four calls a step take 150 us instead of 100: 200 us more.
TEST(SlowedComputeTest, SpeaksWhenKernelsAreSlowerBesideCommunication) {
  const auto finding = find_by_rule(at_the_same_time(150), "slowed-compute");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->verdict.values[0].real, 1.5, 1e-9);
  EXPECT_EQ(finding->at_stake_ns, 200'000);
  EXPECT_EQ(finding->verdict.values[2].integer, 600'000);  // hidden: all of it
}

TEST(SlowedComputeTest, IsQuietWhenTheyAreNotAndNotCheckedWithoutShapes) {
  EXPECT_FALSE(find_by_rule(at_the_same_time(110), "slowed-compute"));
  EXPECT_EQ(state_of_rule(at_the_same_time(150, false), "slowed-compute"),
            RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
