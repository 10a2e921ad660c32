#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// 2 * 1024^3 operations at 989.5 T/s are 2,170 ns.
TEST(HalfOffTensorCoresTest, SpeaksOfBf16OnOrdinaryUnits) {
  const auto finding = find_in_steps("half-off-tensor-cores", [](ProgramSketch& p) {
    p.op("aten::mm", shapes("[[1024, 1024], [1024, 1024]]", kBf16),
         "void gemmSN_NN_kernel<__nv_bfloat16, 128, 2, 4, 8, 4, 4, true>(int)", 100);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 100'000 - 2'170);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 0);
}

// Only sizes that are no multiples of 8 are to be changed. Along one dimension there is no other layout either.
TEST(HalfOffTensorCoresTest, NamesChannelsThatAreNoMultiplesOfEight) {
  const auto find = [](std::string_view dims) {
    return find_in_steps("half-off-tensor-cores", [&](ProgramSketch& p) {
      p.op("aten::cudnn_convolution", shapes(dims, kBf16),
           "void precomputed_convolve_sgemm<__nv_bfloat16, 1024, 5, 5, 4, 3, 3, 1, false>(int)",
           100);
    });
  };
  const auto of_pictures = find("[[96, 3, 384, 384], [512, 3, 16, 16]]");
  ASSERT_TRUE(of_pictures);
  ASSERT_EQ(of_pictures->action.values.size(), 1U);
  EXPECT_EQ(of_pictures->action.values.at(0).integer, 3);
  EXPECT_NE(of_pictures->action.pattern.find("input channels"), std::string::npos);
  const auto aligned = find("[[96, 16, 384, 384], [512, 16, 16, 16]]");
  ASSERT_TRUE(aligned);
  EXPECT_TRUE(aligned->try_next.at(0).starts_with("use channels_last"));
  EXPECT_FALSE(find("[[1, 8, 1, 262144], [128, 8, 1, 9]]"));
}

// cuDNN takes depthwise convolutions of channels_last. Along one dimension there is no such layout.
TEST(HalfOffTensorCoresTest, AdvisesChannelsLastForDepthwisePictures) {
  const auto first_advice = [](std::string_view dims, std::string_view strides) {
    const auto finding = find_in_steps("half-off-tensor-cores", [&](ProgramSketch& p) {
      p.op("aten::_conv_depthwise2d", shapes(dims, kBf16, strides),
           "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel_generic<"
           "c10::BFloat16, int>(int)",
           100);
    });
    return finding ? finding->try_next.at(0) : "";
  };
  constexpr std::string_view kPictures = "[[32, 384, 28, 28], [384, 1, 7, 7]]";
  EXPECT_TRUE(first_advice(kPictures, "[[301056, 784, 28, 1], [49, 49, 7, 1]]")
                  .starts_with("use channels_last"));
  EXPECT_TRUE(first_advice(kPictures, "[[301056, 1, 10752, 384], [49, 49, 7, 1]]")
                  .starts_with("use cuDNN"));
  EXPECT_TRUE(
      first_advice("[[8, 384, 1, 2048], [384, 1, 1, 4]]", "[[786432, 2048, 2048, 1], [4, 4, 4, 1]]")
          .starts_with("use cuDNN"));
}

TEST(HalfOffTensorCoresTest, IsQuietOnTensorCoresAndUnknownKernels) {
  for (const char* kernel : {kNvjet, "my_own_gemm"})
    EXPECT_FALSE(find_in_steps("half-off-tensor-cores", [&](ProgramSketch& p) {
      p.op("aten::mm", shapes("[[1024, 1024], [1024, 1024]]", kBf16), kernel, 100);
    })) << kernel;
}

}  // namespace
}  // namespace lanescope::explain
