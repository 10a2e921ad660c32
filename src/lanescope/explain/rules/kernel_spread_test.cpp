#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

ProgramSketch varying(std::string_view dims, std::string_view slow_dims) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k)
      program.launch({.us = k % 4 == 0 ? 90 : 50, .dims = k % 4 == 0 ? slow_dims : dims});
    program.end();
  }
  return program;
}

TEST(KernelSpreadTest, SpeaksOfEqualCallsOfUnequalLength) {
  const auto finding = find_by_rule(varying("[[8, 8]]", "[[8, 8]]").trace(), "kernel-spread");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 9);  // 3 slow calls in each of 3 steps
  EXPECT_EQ(finding->verdict.values[1].integer, 30);
  EXPECT_EQ(finding->at_stake_ns, 3 * 40'000);
}

TEST(KernelSpreadTest, IsQuietWhenTheShapesExplainIt) {
  EXPECT_FALSE(find_by_rule(varying("[[8, 8]]", "[[16, 16]]").trace(), "kernel-spread"));
}

// Slow calls of a column, or in place, are no equal calls; of equal form they are.
TEST(KernelSpreadTest, ComparesCallsOfOneFormOnly) {
  const auto found = [](std::string_view slow_op, std::string_view slow_strides) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int k = 0; k < 24; ++k) {
        const bool is_slow = k % 4 == 0;
        p.op(is_slow ? slow_op : "aten::mul",
             {.input_dims = "[[4096]]",
              .input_types = R"(["float"])",
              .input_strides = std::string(is_slow ? slow_strides : "[[1]]")},
             kElementwise, is_slow ? 90 : 50);
      }
    });
    return find_by_rule(program.trace(), "kernel-spread").has_value();
  };
  EXPECT_TRUE(found("aten::mul", "[[1]]"));
  EXPECT_FALSE(found("aten::mul", "[[16]]"));
  EXPECT_FALSE(found("aten::mul_", "[[1]]"));
}

TEST(KernelSpreadTest, IsNotCheckedWithoutShapes) {
  EXPECT_EQ(state_of_rule(varying("", "").trace(), "kernel-spread"), RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
