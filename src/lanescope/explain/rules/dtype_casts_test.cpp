#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

void cast(ProgramSketch& p, const std::string& to, const std::string& from, std::int64_t us_value) {
  p.begin_op("aten::to");
  p.op("aten::copy_",
       {.input_dims = "[[64, 64], [64, 64], []]",
        .input_types = "[\"" + to + "\", \"" + from + "\", \"Scalar\"]"},
       kElementwise, us_value);
  p.end();
}

// A step: a kernel of 100 us; a cast to float32 of 30 us, `op` of 40 us, and a cast back of 30 us.
Trace drawn_detour(const std::string& kernel, const std::string& back, bool same = false) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.kernel("gemm", 100);
    cast(p, "float", same ? "float" : "c10::BFloat16", 30);
    p.op("aten::relu", {.input_dims = "[[64, 64]]", .input_types = R"(["float"])"}, kernel, 40);
    if (!back.empty()) cast(p, back, "float", 30);
  });
  return program.trace();
}

// The casts go, 60 us, and half of the operator between them, 20 us.
TEST(DtypeCastsTest, CountsCastsAndHalfOfWhatIsBetween) {
  const auto finding = find_by_rule(drawn_detour(kElementwise, "c10::BFloat16"), "dtype-casts");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values.at(0).text, "float32");
  EXPECT_NE(finding->verdict.pattern.find("once per step"), std::string::npos);
  EXPECT_EQ(finding->verdict.values.at(1).integer, us(60));
  EXPECT_EQ(finding->verdict.values.at(2).integer, us(40));
  EXPECT_EQ(finding->at_stake_ns, us(80));
}

TEST(DtypeCastsTest, IsQuietWithoutTheWayBack) {
  EXPECT_FALSE(find_by_rule(drawn_detour(kElementwise, ""), "dtype-casts"));
  EXPECT_FALSE(find_by_rule(drawn_detour(kElementwise, "c10::Half"), "dtype-casts"));
}

TEST(DtypeCastsTest, IsQuietAboutCopiesOfOneType) {
  EXPECT_FALSE(find_by_rule(drawn_detour(kElementwise, "float", true), "dtype-casts"));
}

// A softmax or a norm may need the digits.
TEST(DtypeCastsTest, IsQuietAboutReductionsInTheWideType) {
  EXPECT_FALSE(find_by_rule(
      drawn_detour("void at::native::reduce_kernel<512, 1>(int)", "c10::BFloat16"), "dtype-casts"));
}

}  // namespace
}  // namespace lanescope::explain
