#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields factors(std::string_view dims, std::string_view strides) {
  return {.input_dims = std::string(dims),
          .input_types = R"(["float", "float"])",
          .input_strides = std::string(strides)};
}

struct DrawnMuon {
  std::string_view first_dims = "[[64, 16], [16, 64]]";
  std::string_view first_strides = "[[16, 1], [1, 16]]";
  bool has_power = true;
  std::string_view between = "aten::mul";
};

// A step on the CPU: X Xᵀ, 60 us, a multiple of it, its power, 200 us, and that times X, 60 us. A multiple takes 4 us.
Trace draw_muon(const DrawnMuon& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto call = [&](std::string_view op, const Fields& fields, std::int64_t length_us) {
      p.begin_op(op, fields).pass(length_us - 2).end();
    };
    call("aten::matmul", factors(drawn.first_dims, drawn.first_strides), 60);
    call(drawn.between, {.input_dims = "[[64, 64], []]", .input_types = R"(["float", "double"])"},
         4);
    if (drawn.has_power)
      call("aten::matmul", factors("[[64, 64], [64, 64]]", "[[64, 1], [64, 1]]"), 200);
    call("aten::matmul", factors("[[64, 64], [64, 16]]", "[[64, 1], [16, 1]]"), 60);
  });
  return program.trace();
}

// Long: 2 x 64 x 64 x 16 + 64^3 = 393,216 multiplications; short: 2 x 64 x 16 x 16 + 16^3 = 36,864, which is 3/32.
// All four calls take 324 us, of which 29/32 go.
TEST(LongSideTest, CountsTheMultiplicationsThatTheShortSideSpares) {
  const auto finding = find_by_rule(draw_muon({}), "long-side");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(324) * 29 / 32);
  EXPECT_EQ(finding->brief.values.at(0).text, "[64, 16]");
  EXPECT_EQ(finding->brief.values.at(1).text, "[64, 64]");
  EXPECT_EQ(finding->action.values.at(0).text, "[16, 16]");
}

TEST(LongSideTest, IsQuietAboutOtherProducts) {
  const auto is_reported = [](const DrawnMuon& drawn) {
    return find_by_rule(draw_muon(drawn), "long-side").has_value();
  };
  EXPECT_FALSE(is_reported({.has_power = false}));                     // another rule's: (X Xᵀ) Y
  EXPECT_FALSE(is_reported({.between = "aten::softmax"}));             // attention
  EXPECT_FALSE(is_reported({.first_strides = "[[16, 1], [64, 1]]"}));  // not its transpose
  EXPECT_FALSE(
      is_reported({.first_dims = "[[16, 64], [64, 16]]", .first_strides = "[[64, 1], [1, 64]]"}));
}

}  // namespace
}  // namespace lanescope::explain
