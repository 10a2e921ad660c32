#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

struct DrawnForwardTwice {
  int passes = 2;
  int gradients = 3;              // accumulated, of the three weights of the model
  bool takes_result = false;      // the second pass takes the result of the first
  bool is_second_frozen = false;  // other layers, of which only the input's gradient is computed
  bool is_other_shape = false;    // of the second pass' input
  // Passes without gradients, before or after the others; checkpointed: in a node of the backward pass.
  int plain_before = 0, plain_after = 0;
  bool is_checkpointed = false;
  bool has_dropout = false;  // after each layer
  // Frames of modules: the passes without gradients are of the same modules, or of others.
  bool has_modules = false, is_other_model = false;
  bool updates_between = false;  // the weights, by an optimizer
};

void module_frame(ProgramSketch& p, int number, std::int64_t start_us) {
  p.sketch().slice("python_function", "nn.Module: Linear_" + std::to_string(number),
                   ProgramSketch::at(start_us), us(p.cpu_us() - start_us));
}

// Three layers of 100 us without nodes.
void draw_plain(ProgramSketch& p, int passes, const DrawnForwardTwice& drawn = {}) {
  for (int i = 0; i < 3 * passes; ++i) {
    const std::int64_t start_us = p.cpu_us();
    if (drawn.has_modules) p.pass(1);
    p.begin_op("aten::linear",
               {.input_dims = "[[8, 4], [4, 4]]", .input_types = R"(["float", "float"])"});
    p.pass(98).end();
    if (drawn.has_modules) module_frame(p, i % 3 + (drawn.is_other_model ? 3 : 0), start_us);
  }
}

// On the CPU: a model of three layers of 100 us, and their nodes of 100 us.
Trace draw_forward_twice(const DrawnForwardTwice& drawn) {
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    const std::int64_t first = number;
    draw_plain(p, drawn.plain_before);
    for (int pass = 0; pass < drawn.passes; ++pass) {
      if (pass > 0 && drawn.updates_between) p.begin("Optimizer.step#SGD.step").pass(5).end();
      for (int layer = 0; layer < 3; ++layer) {
        const std::int64_t start_us = p.cpu_us();
        if (drawn.has_modules) p.pass(1);
        const std::string rows = pass > 0 && drawn.is_other_shape ? "16" : "8";
        p.begin_op("aten::linear", {.sequence = number,
                                    .input_dims = "[[" + rows + ", 4], [4, 4]]",
                                    .input_types = R"(["float", "float"])"});
        p.begin_op("aten::addmm", {.sequence = number++}).pass(96).end().end();
        if (drawn.has_modules) module_frame(p, layer, start_us);
        if (drawn.has_dropout) p.cpu_op("aten::native_dropout", 5);
      }
    }
    for (std::int64_t n = number; n-- > first;) {
      const std::int64_t place = n - first;
      p.begin_op("autograd::engine::evaluate_function: AddmmBackward0",
                 {.sequence = n, .fwd_thread = 1});
      const bool is_first = place % 3 == 0 && !(place == 3 && drawn.takes_result);
      const bool is_frozen = drawn.is_second_frozen && place >= 3;
      // Products of 10 us: the gradient of the weight, and that of the input.
      const auto product = [&](const char* dims) {
        p.begin_op("aten::mm", {.input_dims = dims, .input_types = R"(["float", "float"])"});
        p.pass(8).end();
      };
      if (!is_frozen) product("[[4, 8], [8, 4]]");
      if (!is_first || is_frozen) product("[[8, 4], [4, 4]]");
      p.pass(!is_first && !is_frozen ? 78 : 88).end();
    }
    if (drawn.is_checkpointed) {
      p.begin_op("autograd::engine::evaluate_function: CheckpointFunctionBackward");
      draw_plain(p, 1);
      p.end();
    }
    draw_plain(p, drawn.plain_after, drawn);
    for (int i = 0; i < drawn.gradients; ++i) {
      p.begin_op("torch::autograd::AccumulateGrad",
                 {.input_dims = "[[4, 4]]", .input_types = R"(["float"])"});
      p.pass(6).end();
    }
  });
  return program.trace();
}

// The second pass: three layers and three nodes.
TEST(ForwardTwiceTest, CountsTheSecondPassAndItsBackwardPart) {
  const auto finding = find_by_rule(draw_forward_twice({}), "forward-twice");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(600));
  EXPECT_EQ(finding->brief.values[0].integer, 3);
}

// Dropout gives one input two results: the first is not to be used twice.
TEST(ForwardTwiceTest, KnowsThatDropoutMakesResultsDiffer) {
  const auto with = find_by_rule(draw_forward_twice({.has_dropout = true}), "forward-twice");
  ASSERT_TRUE(with);
  EXPECT_EQ(with->action.pattern.find("one result twice"), std::string::npos);
  EXPECT_NE(with->action.pattern.find("one batch"), std::string::npos);
  const auto without = find_by_rule(draw_forward_twice({}), "forward-twice");
  ASSERT_TRUE(without);
  EXPECT_NE(without->action.pattern.find("one result twice"), std::string::npos);
}

TEST(ForwardTwiceTest, IsQuietAboutTwoModels) {
  EXPECT_FALSE(find_by_rule(draw_forward_twice({.gradients = 6}), "forward-twice"));
}

// After an update the weights are others.
TEST(ForwardTwiceTest, IsQuietAboutPassesWithAnUpdateBetween) {
  EXPECT_FALSE(find_by_rule(draw_forward_twice({.updates_between = true}), "forward-twice"));
}

TEST(ForwardTwiceTest, IsQuietAboutRecurrentLayers) {
  EXPECT_FALSE(find_by_rule(draw_forward_twice({.takes_result = true}), "forward-twice"));
}

// Three layers are trained, and three frozen ones of equal shapes take their result.
TEST(ForwardTwiceTest, IsQuietAboutFrozenLayersThatFollow) {
  EXPECT_FALSE(find_by_rule(draw_forward_twice({.is_second_frozen = true}), "forward-twice"));
}

TEST(ForwardTwiceTest, IsQuietAboutOtherShapesAndOnePass) {
  EXPECT_FALSE(find_by_rule(draw_forward_twice({.is_other_shape = true}), "forward-twice"));
  EXPECT_FALSE(find_by_rule(draw_forward_twice({.passes = 1}), "forward-twice"));
}

TEST(ForwardTwiceTest, CountsASecondPassWithoutGradients) {
  const auto finding =
      find_by_rule(draw_forward_twice({.passes = 1, .plain_after = 1}), "forward-twice");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(300));
  EXPECT_TRUE(finding->action.pattern.starts_with("If model and input are the same"));
}

// A teacher or a target network has layers of the same shapes and weights of its own: its modules have other numbers.
TEST(ForwardTwiceTest, IsQuietAboutTheModulesOfAnotherModel) {
  const auto is_reported = [](bool is_other_model) {
    return find_by_rule(draw_forward_twice({.passes = 1,
                                            .plain_after = 1,
                                            .has_modules = true,
                                            .is_other_model = is_other_model}),
                        "forward-twice")
        .has_value();
  };
  EXPECT_TRUE(is_reported(false));
  EXPECT_FALSE(is_reported(true));
}

// Frozen layers come before those that are trained; several passes are a validation.
TEST(ForwardTwiceTest, IsQuietAboutFrozenLayersValidationAndCheckpoints) {
  EXPECT_FALSE(find_by_rule(draw_forward_twice({.passes = 1, .plain_before = 1}), "forward-twice"));
  EXPECT_FALSE(find_by_rule(draw_forward_twice({.passes = 1, .plain_after = 2}), "forward-twice"));
  EXPECT_FALSE(
      find_by_rule(draw_forward_twice({.passes = 1, .plain_after = 1, .is_checkpointed = true}),
                   "forward-twice"));
}

}  // namespace
}  // namespace lanescope::explain
