#include "lanescope/analysis/matrix_units.h"

#include <gtest/gtest.h>

namespace lanescope::analysis {
namespace {

TEST(MatrixUnitsTest, KnowsTensorCoreKernels) {
  for (const char* name :
       {"volta_h884gemm_128x128_ldg8_nn", "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn",
        "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn",
        "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4",
        "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_"
        "tensor16x8x8",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x64_MI16x16x1_SN_LDSB1"})
    EXPECT_EQ(matrix_units(name), MatrixUnits::kUsed) << name;
}

TEST(MatrixUnitsTest, KnowsOrdinaryKernels) {
  for (const char* name :
       {"ampere_sgemm_128x64_tn", "volta_sgemm_32x128_nn",
        "cutlass_80_simt_sgemm_128x64_8x5_nn_align1",
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_aligna4",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128>",
        "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int)",
        "volta_scudnn_128x128_relu_interior_nn_v1"})
    EXPECT_EQ(matrix_units(name), MatrixUnits::kNotUsed) << name;
}

TEST(MatrixUnitsTest, SaysNothingOfOtherNames) {
  EXPECT_EQ(matrix_units("void at::native::vectorized_elementwise_kernel<4>"),
            MatrixUnits::kUnknown);
  EXPECT_EQ(matrix_units(""), MatrixUnits::kUnknown);
  EXPECT_EQ(matrix_units("my_kernel\x01\xff"), MatrixUnits::kUnknown);
}

}  // namespace
}  // namespace lanescope::analysis
