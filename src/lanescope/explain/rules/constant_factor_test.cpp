#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

struct DrawnTotals {
  std::string_view op = "aten::matmul";
  std::string_view matrix = "[1024, 1024]";
  bool has_gradient = false;
  bool is_made = false;  // torch.tril of a matrix of that size, once before the steps end
  bool trains = true;
};

// Four steps on the CPU: data times a square matrix, 300 us; a layer, 100 us, and its node of the backward pass, 100 us.
Trace draw_totals(const DrawnTotals& drawn) {
  constexpr char kFloats[] = R"(["float", "float"])";
  ProgramSketch program;
  std::int64_t number = 9;
  program.steps(4, [&](ProgramSketch& p) {
    number += 2;
    Fields product = {.sequence = number,
                      .input_dims = "[[64, 1024], " + std::string(drawn.matrix) + "]",
                      .input_types = kFloats};
    p.begin_op(drawn.op, product).pass(298).end();
    if (drawn.is_made)
      p.begin_op("aten::tril",
                 {.input_dims = "[[1024, 1024], []]", .input_types = R"(["float", "Scalar"])"})
          .end();
    p.begin_op("aten::addmm", {.sequence = number + 1,
                               .input_dims = "[[8], [64, 1024], [1024, 8]]",
                               .input_types = R"(["float", "float", "float"])"});
    p.pass(98).end();
    const auto node = [&](std::string_view name, std::int64_t sequence) {
      p.begin_op("autograd::engine::evaluate_function: " + std::string(name),
                 {.sequence = sequence, .fwd_thread = 1});
      p.pass(98).end();
    };
    if (drawn.trains) node("AddmmBackward0", number + 1);
    if (drawn.has_gradient) node("MatmulBackward0", number);
  });
  return program.trace();
}

TEST(ConstantFactorTest, NamesAMatrixThatNothingMakesOrLearns) {
  const auto finding = find_by_rule(draw_totals({}), "constant-factor");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(300));
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::matmul");
  EXPECT_EQ(finding->brief.values.at(1).text, "[1024, 1024]");
}

TEST(ConstantFactorTest, IsQuietIfTheMatrixMayBeAWeightOrChanges) {
  const auto is_reported = [](const DrawnTotals& drawn) {
    return find_by_rule(draw_totals(drawn), "constant-factor").has_value();
  };
  EXPECT_FALSE(is_reported({.op = "aten::linear"}));
  EXPECT_FALSE(is_reported({.matrix = "[1024, 1000]"}));  // of a layer, perhaps
  EXPECT_FALSE(is_reported({.has_gradient = true}));
  EXPECT_FALSE(is_reported({.is_made = true}));
  EXPECT_FALSE(is_reported({.trains = false}));
}

}  // namespace
}  // namespace lanescope::explain
