#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// `op` of these shapes, a cast of what it made, a sum, and other work.
void draw_pairs(ProgramSketch& p, std::string_view op, std::string_view left,
                std::string_view right, std::string_view made) {
  p.op(std::string(op), shapes("[" + std::string(left) + ", " + std::string(right) + "]", kFloat),
       "pairs_kernel", 60);
  p.op("aten::to", shapes("[" + std::string(made) + "]", R"(["float"])"), "copy_kernel", 30);
  p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 180);
}

TEST(AllPairsTest, CountsWhatMakesAndWhatReadsThePairs) {
  const auto finding = find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::gt", "[2048, 1]", "[1, 2048]", "[2048, 2048]");
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 90'000);
  EXPECT_EQ(finding->brief.values.at(1).integer, 2048 * 2048);
  EXPECT_NE(finding->action.pattern.find("searchsorted"), std::string::npos);
}

TEST(AllPairsTest, KnowsDifferencesOfRows) {
  const auto finding = find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::sub", "[512, 1, 64]", "[1, 512, 64]", "[512, 512, 64]");
  });
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("torch.cdist"), std::string::npos);
}

TEST(AllPairsTest, IsQuietAboutResultsAsLargeAsAnInputAndSmallTables) {
  // A bias.
  EXPECT_FALSE(find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::add", "[4096, 4096]", "[4096]", "[4096, 4096]");
  }));
  // A table of angles: 512 x 64.
  EXPECT_FALSE(find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::mul", "[512, 1]", "[64]", "[512, 64]");
  }));
  // A few columns, each for many rows: 8 times an input.
  EXPECT_FALSE(find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::mul", "[1000000, 1]", "[1, 8]", "[1000000, 8]");
  }));
}

TEST(AllPairsTest, LeavesProductsThatAreSummedToAnotherRule) {
  EXPECT_FALSE(find_in_steps("all-pairs", [](ProgramSketch& p) {
    p.op("aten::mul", shapes("[[512, 1, 64], [1, 512, 64]]", kFloat), "pairs_kernel", 60);
    p.op("aten::sum", shapes("[[512, 512, 64]]", R"(["float"])"), "sum_kernel", 60);
  }));
}

TEST(AllPairsTest, DoesNotCountOtherTensors) {
  const auto finding = find_in_steps("all-pairs", [](ProgramSketch& p) {
    draw_pairs(p, "aten::gt", "[2048, 1]", "[1, 2048]", "[2048, 2047]");
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 60'000);
}

}  // namespace
}  // namespace lanescope::explain
