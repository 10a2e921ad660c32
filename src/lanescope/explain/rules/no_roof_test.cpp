#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// 200 us of a pass that needs 41,943 ns: 21 %.
TEST(NoRoofTest, SpeaksOfABusyGpuFarFromItsRoof) {
  const auto finding = find_in_steps("no-roof", [](ProgramSketch& p) {
    for (int i = 0; i < 4; ++i) p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 200);
  });
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->verdict.values.at(1).real, 0.2097, 0.0001);
  EXPECT_EQ(finding->at_stake_ns, 4 * (200'000 - 41'943));
  // A kernel of 200 us is not short of work.
  EXPECT_EQ(finding->action.pattern.find("more work"), std::string::npos);
}

// 512 x 512 floats, read twice and written: 3 MB, less than 1 us of 20.
TEST(NoRoofTest, AdvisesMoreWorkForShortKernels) {
  const auto finding = find_in_steps("no-roof", [](ProgramSketch& p) {
    for (int i = 0; i < 40; ++i)
      p.op("aten::add", shapes("[[512, 512], [512, 512]]", kFloat), "add_kernel", 20);
  });
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("more work"), std::string::npos);
}

// 4096^3 in bf16 needs 139 us of 900. A product reads its matrices in order.
TEST(NoRoofTest, SaysWhichOperatorsWhereTheirReadsAreInOrder) {
  const auto finding = find_in_steps("no-roof", [](ProgramSketch& p) {
    for (int i = 0; i < 4; ++i) p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 900);
  });
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("lanescope roofline"), std::string::npos);
  EXPECT_EQ(finding->action.values.at(0).text, "matrix products");
  EXPECT_EQ(finding->try_next.at(0).find("strided"), std::string::npos);
}

TEST(NoRoofTest, IsQuietNearARoofAndAboutUnknownWork) {
  EXPECT_FALSE(find_in_steps("no-roof", [](ProgramSketch& p) {
    for (int i = 0; i < 4; ++i) p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 100);
  }));
  EXPECT_FALSE(find_in_steps("no-roof", [](ProgramSketch& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 200);
    p.op("my::op", shapes(kSquare, kFloat), "mine", 200);
  }));
}

// What is lost in products alone is at stake where the advice is about products.
TEST(NoRoofTest, HasAtStakeWhatItNames) {
  const auto finding = find_in_steps("no-roof", [](ProgramSketch& p) {
    for (int i = 0; i < 4; ++i) p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 900);
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 400);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->action.values.at(0).text, "matrix products");
  EXPECT_LT(finding->at_stake_ns, us(3600));
}

// Additions at indices never run at the full bandwidth: nothing is promised.
TEST(NoRoofTest, PromisesNothingForAdditionsAtIndices) {
  const auto finding = find_in_steps("no-roof", [](ProgramSketch& p) {
    for (int i = 0; i < 4; ++i)
      p.op("aten::index_add_",
           shapes("[[4096, 4096], [], [4096], [4096, 4096]]",
                  R"(["float", "Scalar", "long int", "float"])"),
           "indexFuncLargeIndex", 900);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->at_stake_ns, 0);
  EXPECT_TRUE(finding->action.pattern.starts_with("Reads and additions at indices"));
}

// Five calls of amax lose 300 us each, a copy 500: the place is that of the five.
TEST(NoRoofTest, NamesTheOperatorThatLosesMostInAll) {
  const auto finding = find_in_steps("no-roof", [](ProgramSketch& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 542);
    for (int i = 0; i < 5; ++i) p.op("aten::mul", shapes(kSquare, kFloat), "mul_kernel", 342);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "aten::mul");
}

}  // namespace
}  // namespace lanescope::explain
