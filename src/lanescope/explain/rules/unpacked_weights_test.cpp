#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Four steps with `layers` linear layers of 300 us; each unpacks its weight with five kernels of 20 us. `odd`: the call before the
// layer. The CPU is ahead of the GPU.
std::optional<Finding> find_unpacking(int layers, std::string_view odd = "aten::to",
                                      std::string_view layer = "aten::linear",
                                      std::string_view mask = "aten::__and__") {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < layers; ++i) {
      for (const std::string_view op :
           {std::string_view("aten::__rshift__"), mask, std::string_view("aten::stack"),
            std::string_view("aten::mul"), odd})
        p.op(op, {}, "elementwise", 20);
      p.op(layer, {}, "gemm", 300);
    }
  });
  return find_by_rule(program.trace(), "unpacked-weights");
}

// 4 x 5 x 20 us in each step.
TEST(UnpackedWeightsTest, CountsWhatUnpacksBeforeALinearLayer) {
  const auto finding = find_unpacking(4);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->at_stake_ns, us(400));
  EXPECT_EQ(finding->spared_calls.size(), 3u * 4 * 5);
  EXPECT_EQ(finding->brief.values.at(0).integer, 4);
  EXPECT_EQ(finding->brief.values.at(1).text, "aten::__rshift__");
  EXPECT_EQ(finding->brief.values.at(2).text, "aten::to");
}

// Few layers, an operator that does more than move numbers, a packed cache of attention, and a shift without a mask.
TEST(UnpackedWeightsTest, IsQuietAboutOtherBits) {
  EXPECT_FALSE(find_unpacking(3));
  EXPECT_FALSE(find_unpacking(4, "aten::relu"));
  EXPECT_FALSE(find_unpacking(4, "aten::to", "aten::scaled_dot_product_attention"));
  EXPECT_FALSE(find_unpacking(4, "aten::to", "aten::linear", "aten::clone"));
}

}  // namespace
}  // namespace lanescope::explain
