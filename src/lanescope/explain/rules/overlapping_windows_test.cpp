#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnWindows {
  std::string_view strides = "[[1, 1], [], []]";
  std::string_view op = "aten::mean";
};

// A step on the CPU: 9,985 windows of 16 out of 10,000 numbers, 300 us; another operator of 100 us.
Trace draw_windows(const DrawnWindows& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op(drawn.op, {.input_dims = "[[9985, 16], [], []]",
                          .input_types = R"(["float", "ScalarList", "Scalar"])",
                          .input_strides = std::string(drawn.strides),
                          .concrete_inputs = R"(["", "[-1]", "False"])"});
    p.pass(298).end().cpu_op("aten::add", 100);
  });
  return program.trace();
}

// 159,760 elements of 10,000 numbers: each is read 15.976 times.
TEST(OverlappingWindowsTest, CountsHowOftenEachNumberIsRead) {
  const auto finding = find_by_rule(draw_windows({}), "overlapping-windows");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::mean");
  EXPECT_EQ(finding->brief.values.at(1).integer, 16);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 300'000 * (1 - 1 / 15.976), 1);
}

TEST(OverlappingWindowsTest, IsQuietAboutTensorsThatAreReadOnce) {
  const auto is_reported = [](const DrawnWindows& drawn) {
    return find_by_rule(draw_windows(drawn), "overlapping-windows").has_value();
  };
  EXPECT_FALSE(is_reported({.strides = "[[16, 1], [], []]"}));  // windows side by side
  EXPECT_FALSE(is_reported({.strides = "[[1, 9985], [], []]"}));
  EXPECT_FALSE(is_reported({.strides = "[[1, 0], [], []]"}));  // expand
  EXPECT_FALSE(is_reported({.strides = ""}));
  EXPECT_FALSE(is_reported({.op = "aten::unfold"}));
}

}  // namespace
}  // namespace lanescope::explain
