#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

void draw_vocabulary(ProgramSketch& p, std::int64_t odd_us) {
  p.op("aten::mm", shapes("[[4096, 4096], [4096, 50257]]", kBf16),
       "cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align1", odd_us);
  p.op("aten::mm", shapes("[[4096, 4096], [4096, 50304]]", kBf16), kNvjet, 2200);
}

// 50257 columns: 1704.2 us at the peak, 5000 measured: 34.1 %. 50304: 1705.8 of 2200: 77.5 %.
// At the neighbour's rate the odd one would take 2198 us.
TEST(UnalignedDimsTest, ComparesAnOddVocabularyWithItsNeighbour) {
  const auto finding =
      find_in_steps("unaligned-dims", [](ProgramSketch& p) { draw_vocabulary(p, 5000); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 50257);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 2'802'000, 1000);
}

TEST(UnalignedDimsTest, IsQuietWhenTheOddSizeIsAsFast) {
  EXPECT_FALSE(find_in_steps("unaligned-dims", [](ProgramSketch& p) { draw_vocabulary(p, 2400); }));
  // An odd number of rows moves no row's beginning.
  EXPECT_FALSE(find_in_steps("unaligned-dims", [](ProgramSketch& p) {
    p.op("aten::mm", shapes("[[4095, 4096], [4096, 4096]]", kBf16), kNvjet, 900);
  }));
}

TEST(UnalignedDimsTest, AsksForShapesAndPeaks) {
  EXPECT_EQ(
      state_in_steps("unaligned-dims", [](ProgramSketch& p) { p.op("aten::mm", {}, kNvjet, 900); }),
      RuleRun::State::kNotChecked);
  EXPECT_EQ(state_in_steps(
                "unaligned-dims", [](ProgramSketch& p) { draw_vocabulary(p, 5000); }, ""),
            RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
