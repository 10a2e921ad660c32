#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kAlign1[] =
    "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1>("
    "cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1::Params)";

std::optional<Finding> finding_of(std::string_view kernel) {
  return find_in_steps("unaligned-kernels", [&](ProgramSketch& p) {
    for (int i = 0; i < 2; ++i) p.op("aten::mm", {}, std::string(kernel), 400);
    p.op("aten::mm", {}, kNvjet, 200);
  });
}

// Two of three matmuls of a step, 400 us each. No shapes are recorded, so all of their time is the limit.
TEST(UnalignedKernelsTest, KnowsThemByTheirNames) {
  const auto finding = finding_of(kAlign1);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 6);  // in three steady steps
  EXPECT_EQ(finding->at_stake_ns, us(800));
  EXPECT_TRUE(finding->gain_is_bound);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 1);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).text, "bf16");
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, 8);
  EXPECT_TRUE(finding_of("turing_fp16_s1688gemm_fp16_128x64_ldg1_f2f_tn"));
}

TEST(UnalignedKernelsTest, IsQuietAboutOthers) {
  EXPECT_FALSE(finding_of(kAmpereGemm));  // ldg8
  EXPECT_FALSE(finding_of("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8"));
  EXPECT_FALSE(finding_of("cutlass_80_simt_sgemm_128x64_8x5_nn_align1"));  // no tensor cores
  EXPECT_FALSE(finding_of(kNvjet));
  // Where shapes are recorded, unaligned-dims knows more.
  EXPECT_FALSE(find_in_steps("unaligned-kernels", [](ProgramSketch& p) {
    p.op("aten::mm", shapes("[[4096, 4096], [4096, 50257]]", kBf16), kAlign1, 5000);
  }));
}

}  // namespace
}  // namespace lanescope::explain
