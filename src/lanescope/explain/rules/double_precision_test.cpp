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

}  // namespace
}  // namespace lanescope::explain
