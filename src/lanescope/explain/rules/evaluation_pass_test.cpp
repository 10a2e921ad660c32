#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnEvaluation {
  int passes = 1;                 // without gradients
  bool is_before_update = false;  // as a teacher's
  bool trains_after = false;      // a second backward pass after them
  bool is_other_model = false;    // with one layer more
  std::string rows = "64";        // of the pass without gradients
  bool updates = true;
};

// On the CPU: a model of two layers of 50 us, its two nodes of 50 us, the optimizer; then passes of 100 us without nodes, after a
// read of the loss.
Trace draw_evaluation(const DrawnEvaluation& drawn) {
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    const auto layer = [&](const std::string& rows, bool has_gradient) {
      testing::Fields fields{.input_dims = "[[" + rows + ", 8], [8, 8]]",
                             .input_types = R"(["float", "float"])"};
      if (has_gradient) fields.sequence = number++;
      p.begin_op("aten::linear", fields);
      if (has_gradient)
        p.begin_op("aten::addmm", {.sequence = fields.sequence}).pass(46).end();
      else
        p.pass(48);
      p.end();
    };
    const auto nodes = [&] {
      for (std::int64_t n = number; n-- > number - 2;) {
        p.begin_op("autograd::engine::evaluate_function: AddmmBackward0",
                   {.sequence = n, .fwd_thread = 1});
        p.pass(48).end();
      }
    };
    const auto evaluate = [&] {
      for (int i = 0; i < drawn.passes; ++i)
        for (int k = 0; k < (drawn.is_other_model ? 3 : 2); ++k) layer(drawn.rows, false);
    };
    layer("64", true);
    layer("64", true);
    if (drawn.is_before_update) evaluate();
    nodes();
    if (drawn.updates) p.begin("Optimizer.step#SGD.step").pass(10).end();
    p.cpu_op("aten::item", 5);
    if (!drawn.is_before_update) evaluate();
    if (drawn.trains_after) {
      layer("64", true);
      layer("64", true);
      nodes();
    }
  });
  return program.trace();
}

TEST(EvaluationPassTest, NamesAPassWithoutGradientsAfterTheOptimizer) {
  const auto finding = find_by_rule(draw_evaluation({}), "evaluation-pass");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::HasSubstr("once per step"));
  EXPECT_EQ(finding->verdict.values.at(0).integer, 2);
  EXPECT_EQ(finding->at_stake_ns, us(100));  // without aten::item
  // As batches of a validation set.
  const auto three = find_by_rule(draw_evaluation({.passes = 3}), "evaluation-pass");
  ASSERT_TRUE(three);
  EXPECT_EQ(three->verdict.values.at(0).integer, 3);
  EXPECT_EQ(three->at_stake_ns, us(300));
}

TEST(EvaluationPassTest, IsQuietAboutTeachersOtherModelsAndPoliciesThatAct) {
  const auto is_reported = [](const DrawnEvaluation& drawn) {
    return find_by_rule(draw_evaluation(drawn), "evaluation-pass").has_value();
  };
  EXPECT_FALSE(is_reported({.is_before_update = true}));
  EXPECT_FALSE(is_reported({.trains_after = true}));
  EXPECT_FALSE(is_reported({.is_other_model = true}));
  EXPECT_FALSE(is_reported({.passes = 20}));
  EXPECT_FALSE(is_reported({.rows = "2"}));
  EXPECT_FALSE(is_reported({.updates = false}));
}

}  // namespace
}  // namespace lanescope::explain
