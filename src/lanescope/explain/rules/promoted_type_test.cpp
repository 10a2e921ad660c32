#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kHalfAndFloat[] = R"(["c10::BFloat16", "float"])";
constexpr char kFloatOnly[] = R"(["float"])";

// mul of a large and a small tensor, one call that takes the result, a cast back, and a product.
void draw_promotion(ProgramSketch& p, std::string_view types, std::string_view small,
                    std::string_view next_type) {
  p.op("aten::mul", shapes("[[4096, 4096], " + std::string(small) + "]", types), "mul_kernel", 60);
  p.op("aten::silu", shapes("[[4096, 4096]]", next_type), "silu_kernel", 40);
  p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 180);
  p.op("aten::relu", shapes("[[4096, 4096]]", kFloatOnly), "relu_kernel", 20);
}

TEST(PromotedTypeTest, CountsTheCallAndThoseThatTakeTheWideResult) {
  const auto finding = find_in_steps("promoted-type", [](ProgramSketch& p) {
    draw_promotion(p, kHalfAndFloat, "[4096]", kFloatOnly);
  });
  ASSERT_TRUE(finding);
  // 60 us and 40 us move four bytes an element instead of two. The relu comes after a product in bfloat16.
  EXPECT_EQ(finding->at_stake_ns, 50'000);
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::mul");
}

TEST(PromotedTypeTest, IsQuietWhereNothingIsWidened) {
  // Both narrow; the large one wide already; a number without dimensions, which does not promote.
  EXPECT_FALSE(find_in_steps("promoted-type", [](ProgramSketch& p) {
    draw_promotion(p, kBf16, "[4096]", R"(["c10::BFloat16"])");
  }));
  EXPECT_FALSE(find_in_steps("promoted-type", [](ProgramSketch& p) {
    draw_promotion(p, R"(["float", "c10::BFloat16"])", "[4096]", kFloatOnly);
  }));
  EXPECT_FALSE(find_in_steps("promoted-type", [](ProgramSketch& p) {
    draw_promotion(p, kHalfAndFloat, "[]", R"(["c10::BFloat16"])");
  }));
  // A residual in float32, as large as what is added to it, is a choice.
  EXPECT_FALSE(find_in_steps("promoted-type", [](ProgramSketch& p) {
    draw_promotion(p, kHalfAndFloat, "[4096, 4096]", kFloatOnly);
  }));
}

}  // namespace
}  // namespace lanescope::explain
