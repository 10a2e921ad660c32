#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(SplitKTest, ExplainsTheReduction) {
  const auto finding = find_in_steps("split-k", [](ProgramSketch& p) {
    p.begin_op("aten::mm", shapes("[[64, 8192], [8192, 128]]", kBf16));
    p.kernel("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT", 40);
    p.kernel("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(int)", 4).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 4000);
  EXPECT_EQ(finding->arithmetic.at(1).values.at(2).integer, 8192);
  EXPECT_EQ(finding->arithmetic.at(2).values.at(0).integer, 3);
  EXPECT_NE(finding->try_next.front().find("larger batch"), std::string::npos);  // 64 rows
}

// More rows give more tiles, but 4,096 rows are no small batch.
TEST(SplitKTest, AdvisesNoLargerBatchForManyRows) {
  const auto finding = find_in_steps("split-k", [](ProgramSketch& p) {
    p.begin_op("aten::mm", shapes("[[4096, 8192], [8192, 128]]", kBf16));
    p.kernel("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT", 40);
    p.kernel("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(int)", 4).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->try_next.front().find("larger batch"), std::string::npos);
}

TEST(SplitKTest, IsQuietWithoutOne) {
  EXPECT_FALSE(
      find_in_steps("split-k", [](ProgramSketch& p) { p.op("aten::mm", {}, kNvjet, 40); }));
}

}  // namespace
}  // namespace lanescope::explain
