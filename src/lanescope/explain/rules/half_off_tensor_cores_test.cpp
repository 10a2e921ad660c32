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

TEST(HalfOffTensorCoresTest, IsQuietOnTensorCoresAndUnknownKernels) {
  for (const char* kernel : {kNvjet, "my_own_gemm"})
    EXPECT_FALSE(find_in_steps("half-off-tensor-cores", [&](ProgramSketch& p) {
      p.op("aten::mm", shapes("[[1024, 1024], [1024, 1024]]", kBf16), kernel, 100);
    })) << kernel;
}

}  // namespace
}  // namespace lanescope::explain
