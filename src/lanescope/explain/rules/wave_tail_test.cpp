#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::grid;
using testing::ProgramSketch;

// 1024 threads of 64 registers: one block on each of 132. 198 blocks: 1.5 waves of two.
TEST(WaveTailTest, SpeaksOfTheHalfEmptyWave) {
  const auto finding = find_in_steps("wave-tail", [](ProgramSketch& p) {
    p.op("aten::mm", {}, kAmpereGemm, 100, grid(198, 1024, 64));
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 25'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 198);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, 132);
}

// A persistent kernel: 132 blocks, [2304 x 2048] in tiles of 256 x 128: 144 tiles, 1.09 waves.
TEST(WaveTailTest, CountsTheTilesOfPersistentKernels) {
  const auto finding = find_in_steps("wave-tail", [](ProgramSketch& p) {
    Fields launch = grid(132, 384, 168);
    launch.shared_bytes = 213'000;
    p.op("aten::mm", shapes("[[2304, 4096], [4096, 2048]]", kBf16), kNvjet, 100, launch);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 144);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).text, "tiles");
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 100'000 * (1 - 144.0 / 264), 1);
}

TEST(WaveTailTest, IsQuietOnFullAndOnManyWaves) {
  for (const std::int64_t blocks : {132, 260, 594, 100})
    EXPECT_FALSE(find_in_steps("wave-tail", [&](ProgramSketch& p) {
      p.op("aten::mm", {}, kAmpereGemm, 100, grid(blocks, 1024, 64));
    })) << blocks;
  // Element-wise kernels flow.
  EXPECT_FALSE(find_in_steps("wave-tail", [&](ProgramSketch& p) {
    p.op("aten::add", {}, "void at::native::vectorized_elementwise_kernel<4>(int)", 100,
         grid(198, 1024, 64));
  }));
}

}  // namespace
}  // namespace lanescope::explain
