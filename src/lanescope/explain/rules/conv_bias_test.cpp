#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

void draw_conv(ProgramSketch& p, std::string_view bias, std::string_view between) {
  p.begin_op("aten::conv2d",
             shapes("[[8, 3, 32, 32], [64, 3, 3, 3], " + std::string(bias) + ", [], [], [], []]",
                    R"(["float", "float", "float", "", "", "", ""])"));
  p.begin_op("aten::_convolution").op("aten::cudnn_convolution", {}, kFprop, 100);
  p.op("aten::add_", {}, "add_kernel", 20).end().end();
  if (!between.empty()) p.op(between, shapes("[[8, 64, 32, 32]]", R"(["float"])"), "k", 10);
  p.op("aten::batch_norm", shapes("[[8, 64, 32, 32], [64]]", kFloat), "bn", 50);
}

TEST(ConvBiasTest, SpeaksOfABiasBeforeBatchNorm) {
  const auto finding =
      find_in_steps("conv-bias", [](ProgramSketch& p) { draw_conv(p, "[64]", ""); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 20'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 3);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).integer, 0);
}

TEST(ConvBiasTest, IsQuietWithoutBiasOrWithAnActivationBetween) {
  EXPECT_FALSE(find_in_steps("conv-bias", [](ProgramSketch& p) { draw_conv(p, "[]", ""); }));
  EXPECT_FALSE(
      find_in_steps("conv-bias", [](ProgramSketch& p) { draw_conv(p, "[64]", "aten::relu"); }));
}

}  // namespace
}  // namespace lanescope::explain
