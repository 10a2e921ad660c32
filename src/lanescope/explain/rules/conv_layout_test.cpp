#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(ConvLayoutTest, CountsTheShuffles) {
  const auto finding = find_in_steps("conv-layout", [](ProgramSketch& p) {
    p.begin_op("aten::cudnn_convolution");
    p.kernel("void cudnn::engines_precompiled::nchwToNhwcKernel<float, float>(int)", 10);
    p.kernel(kFprop, 100);
    p.kernel("void cudnn::engines_precompiled::nhwcToNchwKernel<float, float>(int)", 15).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 25'000);
  EXPECT_EQ(finding->brief.values.at(0).integer, 2);  // of a step
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 3);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).integer, 3);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, 3);
}

// channels_last is for four dimensions: torch refuses it for tensors of a conv3d.
TEST(ConvLayoutTest, NamesTheLayoutOfVolumes) {
  const auto advice = [](std::string_view op) {
    const auto finding = find_in_steps("conv-layout", [&](ProgramSketch& p) {
      p.begin_op(std::string(op));
      p.kernel("void cudnn::engines_precompiled::nchwToNhwcKernel<float, float>(int)", 10);
      p.kernel(kFprop, 100).end();
    });
    return finding ? finding->try_next.at(0) : "";
  };
  EXPECT_THAT(advice("aten::conv3d"), ::testing::HasSubstr("torch.channels_last_3d)"));
  EXPECT_THAT(advice("aten::conv2d"), ::testing::HasSubstr("torch.channels_last)"));
}

// A Fourier neural operator: a transform and its inverse for each convolution. One transform for three is another matter.
TEST(ConvLayoutTest, IsQuietWhereTransformsNeedChannelsFirst) {
  const auto is_reported = [](int transforms) {
    return find_in_steps("conv-layout",
                         [&](ProgramSketch& p) {
                           for (int i = 0; i < transforms; ++i)
                             p.op("aten::_fft_r2c", {}, "regular_fft", 10);
                           for (int i = 0; i < 3; ++i) {
                             p.begin_op("aten::convolution");
                             p.kernel(
                                 "void cudnn::engines_precompiled::nchwToNhwcKernel<float, "
                                 "float>(int)",
                                 10);
                             p.kernel(kFprop, 30).end();
                           }
                         })
        .has_value();
  };
  EXPECT_TRUE(is_reported(1));
  EXPECT_FALSE(is_reported(3));
}

TEST(ConvLayoutTest, IsQuietAboutPaddingOfChannels) {
  EXPECT_FALSE(find_in_steps("conv-layout", [](ProgramSketch& p) {
    p.begin_op("aten::cudnn_convolution");
    p.kernel("void cudnn::ops::nhwcAddPaddingKernel<float, float, float, true>(int)", 25);
    p.kernel(kFprop, 100).end();
  }));
}

TEST(ConvLayoutTest, IsQuietWithoutShuffles) {
  EXPECT_FALSE(find_in_steps(
      "conv-layout", [](ProgramSketch& p) { p.op("aten::cudnn_convolution", {}, kFprop, 100); }));
  EXPECT_FALSE(find_in_steps("conv-layout", [](ProgramSketch& p) {
    p.begin_op("aten::cudnn_convolution").kernel(kFprop, 1000);
    p.kernel("void cudnn::engines_precompiled::nchwToNhwcKernel<float, float>(int)", 10).end();
  }));
}

}  // namespace
}  // namespace lanescope::explain
