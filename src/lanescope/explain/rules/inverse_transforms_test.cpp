#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields transform_fields(std::string_view dims, std::string_view over = "[-2, -1]") {
  return {.input_dims = "[" + std::string(dims) + ", [], [], []]",
          .concrete_inputs = R"(["", "", ")" + std::string(over) + R"(", ""])"};
}

struct DrawnFilters {
  std::string_view between = "aten::view";  // the way back and the next way out
  std::string_view next = "aten::fft_rfft2";
  std::string_view next_dims = "[4, 16, 16]";
  std::string_view next_over = "[-2, -1]";
};

// A step on the CPU: out (100 us), a product (10 us), back (200 us), a view, out (100 us), a product, back.
Trace draw_filters(const DrawnFilters& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto call = [&](std::string_view op, const Fields& fields, std::int64_t length_us) {
      p.begin_op(op, fields).pass(length_us - 2).end();
    };
    call("aten::fft_rfft2", transform_fields("[4, 16, 16]"), 100);
    call("aten::mul", {}, 10);
    call("aten::fft_irfft2", transform_fields("[4, 16, 9]"), 200);
    call(drawn.between, {}, 4);
    call(drawn.next, transform_fields(drawn.next_dims, drawn.next_over), 100);
    call("aten::mul", {}, 10);
    call("aten::fft_irfft2", transform_fields("[4, 16, 9]"), 200);
  });
  return program.trace();
}

// Once a step, 200 us back and 100 us out again.
TEST(InverseTransformsTest, CountsTheWayBackAndTheNextWayOut) {
  const auto finding = find_by_rule(draw_filters({}), "inverse-transforms");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(300));
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::fft_rfft2");
  EXPECT_EQ(finding->brief.values.at(1).text, "aten::fft_irfft2");
  EXPECT_THAT(finding->brief.pattern, ::testing::HasSubstr("undoes it, once per step"));
}

TEST(InverseTransformsTest, IsQuietIfSomethingNeedsTheNumbers) {
  const auto is_reported = [](const DrawnFilters& drawn) {
    return find_by_rule(draw_filters(drawn), "inverse-transforms").has_value();
  };
  EXPECT_FALSE(is_reported({.between = "aten::relu"}));
  EXPECT_FALSE(is_reported({.between = "aten::slice"}));
  EXPECT_FALSE(is_reported({.next_dims = "[4, 32, 32]"}));  // another tensor, or padded
  EXPECT_FALSE(is_reported({.next_over = "[0, 1]"}));
  EXPECT_FALSE(is_reported({.next = "aten::fft_fft2"}));
}

}  // namespace
}  // namespace lanescope::explain
