#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kDoubleGemm[] = "cutlass_80_tensorop_d884gemm_64x32_16x4_tn_align1";

// Steps of 180 us of a float32 kernel and `us_value` of a double one; the GPU never waits.
Trace drawn_double(std::int64_t us_value, std::string_view type) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.op("aten::mm",
         {.input_dims = "[[64, 64], [64, 64]]",
          .input_types = "[\"" + std::string(type) + "\", \"" + std::string(type) + "\"]"},
         kDoubleGemm, us_value);
    p.kernel("other", 180);
  });
  return program.trace();
}

// On a GPU whose rates are not known, half of the time is at stake.
TEST(DoublePrecisionTest, CountsHalfOfTheTime) {
  const auto finding = find_by_rule(drawn_double(120, "double"), "double-precision");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values.at(1).integer, us(120));
  EXPECT_EQ(finding->at_stake_ns, us(60));
}

TEST(DoublePrecisionTest, IsQuietAboutOtherTypesAndSmallShares) {
  EXPECT_FALSE(find_by_rule(drawn_double(120, "float"), "double-precision"));
  EXPECT_FALSE(find_by_rule(drawn_double(5, "double"), "double-precision"));  // 5 of 185 us
}

// 0.5 * x: the number is recorded as double, and the kernel computes in float32.
TEST(DoublePrecisionTest, IsQuietAboutANumberOfPythonBesideFloat32) {
  const auto find = [](const char* types) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.op("aten::mul", {.input_dims = "[[], [64, 64]]", .input_types = types}, "mul", 120);
      p.kernel("other", 180);
    });
    return find_by_rule(program.trace(), "double-precision");
  };
  EXPECT_FALSE(find(R"(["double", "float"])"));
  EXPECT_TRUE(find(R"(["double", "double"])"));
  EXPECT_TRUE(find(R"(["float", "double"])"));
}

constexpr char kComplexMul[] =
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<"
    "at::native::BinaryFunctor<c10::complex<double>, c10::complex<double>, c10::complex<double>, "
    "at::native::binary_internal::MulFunctor<c10::complex<double> > > > >(int)";

// A kernel of 100 us and a copy of 20 us in one operator, without shapes; and 180 us of float32.
Trace draw_complex(std::string_view kernel, std::string_view beside = {}) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op("aten::fft_irfft2").kernel(kernel, 100);
    if (!beside.empty()) p.kernel(beside, 10);
    p.copy(20, 8'192).end();
    p.kernel("other", 180);
  });
  return program.trace();
}

TEST(DoublePrecisionTest, CountsComplexNumbersAndCopiesOfThem) {
  const auto finding = find_by_rule(draw_complex(kComplexMul), "double-precision");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(1).integer, us(120));
  EXPECT_EQ(finding->at_stake_ns, us(60));
  EXPECT_NE(finding->action.pattern.find("complex64"), std::string::npos);
  EXPECT_EQ(finding->action.pattern.find(".float()"), std::string::npos);
}

// complex128 times float64: the inputs are cast while they are read.
TEST(DoublePrecisionTest, CountsComplexNumbersTimesRealOnes) {
  std::string mixed = kComplexMul;
  mixed.replace(mixed.find("gpu_kernel_impl_nocast"), 22, "gpu_kernel_impl");
  const auto finding = find_by_rule(draw_complex(mixed), "double-precision");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(60));
}

// complex64 is single precision. A copy beside other kernels may be of any type.
TEST(DoublePrecisionTest, IsQuietAboutSingleComplexNumbersAndCopiesOfUnknownType) {
  std::string single = kComplexMul;
  for (std::size_t at = 0; (at = single.find("double", at)) != std::string::npos;)
    single.replace(at, 6, "float");
  EXPECT_FALSE(find_by_rule(draw_complex(single), "double-precision"));
  const auto finding = find_by_rule(draw_complex(kComplexMul, single), "double-precision");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(50));
}

// Real numbers alone: no word of complex ones. The recorded type of a copy decides.
TEST(DoublePrecisionTest, ReadsTheTypeOfACopy) {
  const auto find = [](const char* type) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.op("aten::mm",
           {.input_dims = "[[64, 64], [64, 64]]", .input_types = R"(["double", "double"])"},
           kDoubleGemm, 120);
      p.begin_op("aten::copy_",
                 {.input_dims = "[[64, 64], [64, 64]]",
                  .input_types = std::string("[\"") + type + "\", \"" + type + "\"]"});
      p.copy(20, 8'192).end();
      p.kernel("other", 180);
    });
    return find_by_rule(program.trace(), "double-precision");
  };
  const auto of_double = find("double"), of_float = find("float");
  ASSERT_TRUE(of_double && of_float);
  EXPECT_EQ(of_double->at_stake_ns, us(70));
  EXPECT_EQ(of_float->at_stake_ns, us(60));
  EXPECT_EQ(of_double->brief.pattern.find("complex"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain
