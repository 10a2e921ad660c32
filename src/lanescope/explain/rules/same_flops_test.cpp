#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

void draw_pair(ProgramSketch& p, std::int64_t slow_us) {
  p.op("aten::mm", shapes(kSquare, kBf16, "[[4096, 1], [4096, 1]]"), "nvjet_sm90_tst_64x64_NNN",
       slow_us);
  p.op("aten::mm", shapes(kSquare, kBf16, "[[4096, 1], [1, 4096]]"), kNvjet, 150);
}

TEST(SameFlopsTest, SpeaksOfTheSlowTwin) {
  const auto finding = find_in_steps("same-flops", [](ProgramSketch& p) { draw_pair(p, 200); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 137);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 200'000);
  EXPECT_EQ(finding->verdict.values.at(4).integer, 150'000);
  EXPECT_EQ(finding->at_stake_ns, 50'000);
}

// The same number of operations, but the sum over 32 reads the large matrix that the other writes.
TEST(SameFlopsTest, IsQuietAboutProductsOfOtherSizes) {
  EXPECT_FALSE(find_in_steps("same-flops", [](ProgramSketch& p) {
    p.op("aten::mm", shapes("[[1024, 8192], [8192, 8192]]", kBf16), kNvjet, 300);
    p.op("aten::mm", shapes("[[8192, 1024], [1024, 8192]]", kBf16), kNvjet, 200);
  }));
}

// aten::mm alone does not say that one of its factors is a weight.
TEST(SameFlopsTest, TransposesWeightsOnlyInsideALinearLayer) {
  EXPECT_THAT(
      find_in_steps("same-flops", [](ProgramSketch& p) { draw_pair(p, 200); })->action.pattern,
      ::testing::Not(::testing::HasSubstr("weight")));
  const auto finding = find_in_steps("same-flops", [](ProgramSketch& p) {
    p.begin_op("aten::linear");
    draw_pair(p, 200);
    p.end();
  });
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("Store the weight transposed"));
  // The fast ones are the layer's backward pass: a transposed weight would make them the slow ones.
  const auto in_training = find_in_steps("same-flops", [](ProgramSketch& p) {
    p.begin_op("aten::linear");
    p.op("aten::mm", shapes(kSquare, kBf16, "[[4096, 1], [4096, 1]]"), "nvjet_sm90_tst_64x64_NNN",
         200);
    p.end().begin_op("AddmmBackward0");
    p.op("aten::mm", shapes(kSquare, kBf16, "[[4096, 1], [1, 4096]]"), kNvjet, 150);
    p.end();
  });
  ASSERT_TRUE(in_training);
  EXPECT_THAT(in_training->action.pattern, ::testing::Not(::testing::HasSubstr("weight")));
}

TEST(SameFlopsTest, IsQuietAboutSmallDifferences) {
  EXPECT_FALSE(find_in_steps("same-flops", [](ProgramSketch& p) { draw_pair(p, 190); }));
}

}  // namespace
}  // namespace lanescope::explain
