#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::grid;
using testing::ProgramSketch;

// 255 registers: 8192 a warp, two warps in each quarter: 8 of 64. Memory would need 41,943 ns.
TEST(LowOccupancyTest, SpeaksOfMemoryBoundKernelsWithFewWarps) {
  const auto finding = find_in_steps("low-occupancy", [](ProgramSketch& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 200, grid(1000, 128, 255));
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 200'000 - 41'943);
  EXPECT_EQ(finding->verdict.values.at(2).text, "registers");
}

TEST(LowOccupancyTest, IsQuietWhenFastOrWhenAMatmul) {
  EXPECT_FALSE(find_in_steps("low-occupancy", [](ProgramSketch& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 60, grid(1000, 128, 255));
  }));
  EXPECT_FALSE(find_in_steps("low-occupancy", [](ProgramSketch& p) {
    p.op("aten::mm", shapes("[[8, 8192], [8192, 8192]]", kBf16), kNvjet, 200, grid(1000, 128, 255));
  }));
  // Half of the warps, by registers.
  EXPECT_FALSE(find_in_steps("low-occupancy", [](ProgramSketch& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 200, grid(10'000, 128, 64));
  }));
}

}  // namespace
}  // namespace lanescope::explain
