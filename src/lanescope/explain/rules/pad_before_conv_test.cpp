#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

void draw_pad_before_conv(ProgramSketch& p, std::string_view pads, std::string_view value,
                          std::string_view image_after) {
  Fields inputs = shapes("[[4, 8, 30, 30], [], []]", R"(["float", "ScalarList", "Scalar"])");
  inputs.concrete_inputs =
      R"(["", ")" + std::string(pads) + R"(", ")" + std::string(value) + R"("])";
  p.begin_op("aten::pad");
  p.op("aten::constant_pad_nd", inputs, "copy_kernel", 40).end();
  p.op("aten::conv2d", shapes("[" + std::string(image_after) + ", [8, 8, 3, 3]]", kFloat), kFprop,
       160);
}

TEST(PadBeforeConvTest, NamesPaddingThatTheConvolutionCouldDo) {
  const auto finding = find_in_steps("pad-before-conv", [](ProgramSketch& p) {
    draw_pad_before_conv(p, "[1, 1, 1, 1]", "0.", "[4, 8, 32, 32]");
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 40'000);
  EXPECT_EQ(finding->brief.values.at(0).integer, 1);
}

TEST(PadBeforeConvTest, IsQuietAboutOtherPadding) {
  const auto fires = [](std::string_view pads, std::string_view value, std::string_view after) {
    return find_in_steps("pad-before-conv",
                         [&](ProgramSketch& p) { draw_pad_before_conv(p, pads, value, after); })
        .has_value();
  };
  EXPECT_FALSE(fires("[0, 1, 0, 1]", "0.", "[4, 8, 31, 31]"));         // on one side only
  EXPECT_FALSE(fires("[1, 1, 1, 1]", "1.", "[4, 8, 32, 32]"));         // with ones
  EXPECT_FALSE(fires("[1, 1, 1, 1]", "0.", "[4, 8, 40, 40]"));         // of another tensor
  EXPECT_FALSE(fires("[0, 0, 0, 0, 1, 1]", "0.", "[4, 10, 30, 30]"));  // more channels
}

}  // namespace
}  // namespace lanescope::explain
