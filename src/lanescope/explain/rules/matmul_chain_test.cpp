#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(MatmulChainTest, CountsTheViewsThatLaunchNothing) {
  const auto finding = find_in_steps("matmul-chain", [](ProgramSketch& p) {
    p.begin_op("aten::linear").begin_op("aten::t").begin_op("aten::transpose").end().end();
    p.op("aten::addmm", {}, kNvjet, 100).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 6);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 3);
  // t: 4 us, 2 of them in transpose.
  EXPECT_EQ(finding->verdict.values.at(2).integer, 4000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "aten::linear > aten::addmm");
}

TEST(MatmulChainTest, IsQuietWhereViewsAreNoPartOfTheTime) {
  EXPECT_FALSE(find_in_steps("matmul-chain", [](ProgramSketch& p) {
    p.begin_op("aten::linear").begin_op("aten::t").end();
    p.op("aten::addmm", {}, kNvjet, 100).end().pass(500);
  }));
  // A view that launches is none.
  EXPECT_FALSE(find_in_steps("matmul-chain", [](ProgramSketch& p) {
    p.begin_op("aten::matmul").begin_op("aten::reshape").kernel("copy", 5).end();
    p.op("aten::mm", {}, kNvjet, 100).end();
  }));
}

}  // namespace
}  // namespace lanescope::explain
