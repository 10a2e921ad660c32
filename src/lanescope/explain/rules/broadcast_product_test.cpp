#include <gtest/gtest.h>

#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields sum_over(std::string_view dims, std::string_view over) {
  Fields fields = shapes(dims, R"(["float", "ScalarList", "Scalar", ""])");
  fields.concrete_inputs = R"(["", ")" + std::string(over) + R"(", "False", ""])";
  return fields;
}

// [8, 64, 32, 1] * [8, 1, 32, 64] summed over the 32: a product of [64, 32] and [32, 64], through
// 8 * 64 * 32 * 64 floats, which are 4 MiB.
void draw_broadcast_product(ProgramSketch& p, std::string_view left, std::string_view right,
                            std::string_view product, std::string_view over) {
  p.op("aten::mul", shapes("[" + std::string(left) + ", " + std::string(right) + "]", kFloat),
       "mul_kernel", 60);
  p.begin_op("aten::unsqueeze").end();
  p.op("aten::sum", sum_over("[" + std::string(product) + ", [], [], []]", over), "sum_kernel", 20);
  p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 180);
}

TEST(BroadcastProductTest, NamesTheProduct) {
  const auto finding = find_in_steps("broadcast-product", [](ProgramSketch& p) {
    draw_broadcast_product(p, "[8, 64, 32, 1]", "[8, 1, 32, 64]", "[8, 64, 32, 64]", "[2]");
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 80'000);
  EXPECT_EQ(finding->brief.values.at(0).integer, 4 * 8 * 64 * 32 * 64);
}

TEST(BroadcastProductTest, CountsDimensionsFromTheEndToo) {
  EXPECT_TRUE(find_in_steps("broadcast-product", [](ProgramSketch& p) {
    draw_broadcast_product(p, "[64, 1, 32]", "[64, 32]", "[64, 64, 32]", "[-1]");
  }));
}

TEST(BroadcastProductTest, IsQuietAboutOtherSums) {
  // A weighted mean: the product is as large as its first factor.
  EXPECT_FALSE(find_in_steps("broadcast-product", [](ProgramSketch& p) {
    draw_broadcast_product(p, "[64, 64, 32]", "[64, 64, 1]", "[64, 64, 32]", "[2]");
  }));
  // Over a dimension that only one factor has: that one can be summed before.
  EXPECT_FALSE(find_in_steps("broadcast-product", [](ProgramSketch& p) {
    draw_broadcast_product(p, "[8, 64, 32, 1]", "[8, 1, 32, 64]", "[8, 64, 32, 64]", "[3]");
  }));
  // The sum of another tensor.
  EXPECT_FALSE(find_in_steps("broadcast-product", [](ProgramSketch& p) {
    draw_broadcast_product(p, "[8, 64, 32, 1]", "[8, 1, 32, 64]", "[8, 64, 32, 63]", "[2]");
  }));
}

}  // namespace
}  // namespace lanescope::explain
