#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnNode {
  std::string node = "TwoTasksBackward";
  std::string_view types = R"(["float", ""])";  // of the gradients: the second is undefined
  std::string_view first = "aten::zeros";
};

// Four steps with a node that makes zeros, 10 us on the GPU, and two products of 100 us for each of two gradients [64, 32].
Trace draw_node(const DrawnNode& drawn) {
  constexpr std::string_view kRun = "autograd::engine::evaluate_function: ";
  constexpr char kFloats[] = R"(["float", "float"])";
  ProgramSketch program;
  std::int64_t number = 9;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op(std::string(kRun) + drawn.node, {.sequence = ++number, .fwd_thread = 1});
    p.begin_op(drawn.node, {.sequence = number,
                            .fwd_thread = 1,
                            .input_dims = "[[64, 32], []]",
                            .input_types = std::string(drawn.types)});
    p.op(drawn.first,
         {.input_dims = "[[], [], [], [], []]",
          .input_types = R"(["ScalarList", "", "", "", ""])",
          .concrete_inputs = R"(["[64, 32]", "6", "0", "", ""])"},
         "fill", 10);
    for (int gradient = 0; gradient < 2; ++gradient) {
      p.op("aten::matmul", {.input_dims = "[[64, 32], [32, 16]]", .input_types = kFloats}, "gemm",
           100);
      p.op("aten::matmul", {.input_dims = "[[16, 64], [64, 32]]", .input_types = kFloats}, "gemm",
           100);
    }
    p.end().end();
  });
  return program.trace();
}

// Two of four products belong to the gradient that is missing.
TEST(MaterializedGradientsTest, CountsTheProductsOfZeros) {
  const auto finding = find_by_rule(draw_node({}), "materialized-gradients");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(210));
  EXPECT_EQ(finding->brief.values.at(0).text, "TwoTasksBackward");
  EXPECT_EQ(finding->brief.values.at(1).integer, 1);
  EXPECT_EQ(finding->brief.values.at(2).integer, 2);
}

TEST(MaterializedGradientsTest, IsQuietIfNoGradientIsMissingOrNoneIsMade) {
  const auto is_reported = [](const DrawnNode& drawn) {
    return find_by_rule(draw_node(drawn), "materialized-gradients").has_value();
  };
  EXPECT_FALSE(is_reported({.node = "AddmmBackward0"}));          // torch's own
  EXPECT_FALSE(is_reported({.types = R"(["float", "float"])"}));  // both are there
  EXPECT_FALSE(is_reported({.first = "aten::mT"}));               // None was left as it is
}

}  // namespace
}  // namespace lanescope::explain
