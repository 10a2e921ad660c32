#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

ProgramSketch two_kernels(std::int64_t gemm_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k)
      program.launch({.us = gemm_us})
          .launch({.name = "softmax", .us = 40})
          .launch({.name = "add", .us = 40});
    program.end();
  }
  return program;
}

TEST(HotspotKernelTest, SpeaksOfTheKernelThatTakesMost) {
  const auto finding = find_by_rule(two_kernels(100).trace(), "hotspot-kernel");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 400'000);
}

TEST(HotspotKernelTest, IsQuietWhenTimeIsSpread) {
  EXPECT_FALSE(find_by_rule(two_kernels(40).trace(), "hotspot-kernel"));
}

}  // namespace
}  // namespace lanescope::explain
