#include "lanescope/analysis/kernel_name_totals.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

TEST(KernelNameTotalsTest, TotalsAddUpEachNameAndSayWhatWasNamed) {
  const Trace trace = testing::Sketch()
                          .kernel("ampere_sgemm_128x64_nn", 0, 30, {})
                          .kernel("who_knows", 40, 20, {})
                          .kernel("ampere_sgemm_128x64_nn", 70, 50, {})
                          .op("aten::mm", 0, 500, {})
                          .trace();
  const KernelNameTotals totals = compute_kernel_name_totals(trace);
  ASSERT_EQ(totals.rows.size(), 2u);  // an operator is no device work
  EXPECT_EQ(totals.rows[0].name.text, "GEMM f32 128x64 nn (cuBLAS, Ampere)");
  EXPECT_EQ(totals.rows[0].count, 2);
  EXPECT_EQ(totals.rows[0].total_ns, 80);  // 30 and 50
  EXPECT_EQ(totals.rows[1].total_ns, 20);
  EXPECT_EQ(totals.total_ns, 100);
  EXPECT_EQ(totals.named_ns, 80);
}

}  // namespace
}  // namespace lanescope::analysis
