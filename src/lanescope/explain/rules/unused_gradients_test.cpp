#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnUnusedGradients {
  int layers = 5;
  int trained = 1;  // the last layers, in the optimizer
  bool as_list = true;
  bool is_distributed = false;
};

// A step on the CPU. The backward pass has a node of 100 us for each layer, from the last to the first,
// and after each a gradient of the layer's weight, 10 us.
Trace draw_unused_gradients(const DrawnUnusedGradients& drawn) {
  constexpr char kShape[] = "[8, 8]";
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    for (int layer = 0; layer < drawn.layers; ++layer) {
      p.begin_op("aten::linear", {.sequence = number++});
      p.pass(48).end();
    }
    for (int layer = 0; layer < drawn.layers; ++layer) {
      p.begin_op("autograd::engine::evaluate_function: AddmmBackward0",
                 {.sequence = number - 1 - layer, .fwd_thread = 1});
      p.pass(98).end();
      p.begin_op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
      p.begin_op("torch::autograd::AccumulateGrad",
                 {.input_dims = std::string("[") + kShape + "]", .input_types = R"(["float"])"});
      p.pass(6).end().end();
    }
    p.begin("Optimizer.step#SGD.step").pass(1);
    std::string list;
    for (int i = 0; i < drawn.trained; ++i) list += (i > 0 ? ", " : "") + std::string(kShape);
    if (drawn.as_list)
      p.begin_op("aten::_foreach_add_", {.input_dims = "[[" + list + "], []]"}).pass(10).end();
    for (int i = 0; !drawn.as_list && i < drawn.trained; ++i)
      p.begin_op("aten::add_", {.input_dims = std::string("[") + kShape + ", []]"}).pass(5).end();
    p.end();
    if (drawn.is_distributed) p.cpu_op("c10d::allreduce_", 5);
  });
  return program.trace();
}

// After the first gradient come four nodes of 100 us and their gradients, 10 us each.
TEST(UnusedGradientsTest, ComparesGradientsWithUpdates) {
  for (const bool as_list : {true, false}) {
    const auto finding =
        find_by_rule(draw_unused_gradients({.as_list = as_list}), "unused-gradients");
    ASSERT_TRUE(finding) << as_list;
    EXPECT_EQ(finding->verdict.values[0].integer, 5);
    EXPECT_EQ(finding->verdict.values[1].integer, 1);
    EXPECT_EQ(finding->at_stake_ns, us(4 * 110));
    EXPECT_NE(finding->action.pattern.find("requires_grad_"), std::string::npos);
  }
}

TEST(UnusedGradientsTest, IsQuietWhereGradientsAreUsed) {
  EXPECT_FALSE(find_by_rule(draw_unused_gradients({.trained = 5}), "unused-gradients"));
  EXPECT_FALSE(find_by_rule(draw_unused_gradients({.trained = 4}),
                            "unused-gradients"));  // an input's gradient
}

// Each rank may update its own part.
TEST(UnusedGradientsTest, IsQuietAboutJobsOfSeveralRanks) {
  EXPECT_FALSE(find_by_rule(draw_unused_gradients({.is_distributed = true}), "unused-gradients"));
}

// What the optimizer updates is not known.
TEST(UnusedGradientsTest, IsQuietWithoutTheOptimizersTensors) {
  EXPECT_FALSE(find_by_rule(draw_unused_gradients({.trained = 0}), "unused-gradients"));
}

struct DrawnTeacher {
  int passes = 1;            // backward passes of a step
  bool fills_zeros = false;  // zero_grad(set_to_none=False)
  bool teacher_adds = true;
};

// Without shapes: three layers of a student, then three of its teacher, a node of 100 us and a gradient of 10 us each.
// AccumulateGrad adds to what is there: the teacher's gradients always, the student's from the second pass on.
Trace draw_teacher(const DrawnTeacher& drawn) {
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin("Optimizer.zero_grad#SGD.zero_grad");
    if (drawn.fills_zeros) p.cpu_op("aten::_foreach_zero_", 5);
    p.end();
    for (int pass = 0; pass < drawn.passes; ++pass) {
      number += 6;
      for (int layer = 0; layer < 6; ++layer) {
        p.begin_op("autograd::engine::evaluate_function: AddmmBackward0",
                   {.sequence = number - 1 - layer, .fwd_thread = 1});
        p.pass(98).end();
        p.begin_op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
        p.begin_op("torch::autograd::AccumulateGrad");
        const bool adds = layer < 3 ? pass > 0 || drawn.fills_zeros : drawn.teacher_adds;
        p.cpu_op(adds ? "aten::add_" : "aten::detach", 6).end().end();
      }
    }
    p.begin("Optimizer.step#SGD.step").pass(10).end();
  });
  return program.trace();
}

TEST(UnusedGradientsTest, FindsGradientsThatNothingClearsWithoutShapes) {
  const auto finding = find_by_rule(draw_teacher({}), "unused-gradients");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);
  EXPECT_EQ(finding->verdict.values[1].integer, 6);
  EXPECT_EQ(finding->at_stake_ns, us(3 * 110));
  EXPECT_NE(finding->action.pattern.find("no_grad"), std::string::npos);
}

// Micro batches add up; zeros are added to; or each gradient is new.
TEST(UnusedGradientsTest, IsQuietAboutGradientsThatAddUpOrAreCleared) {
  EXPECT_FALSE(find_by_rule(draw_teacher({.passes = 2}), "unused-gradients"));
  EXPECT_FALSE(find_by_rule(draw_teacher({.fills_zeros = true}), "unused-gradients"));
  EXPECT_FALSE(find_by_rule(draw_teacher({.teacher_adds = false}), "unused-gradients"));
}

struct DrawnStyle {
  int clears_every = 1;         // a zero_grad() before every so many passes
  const char* other = nullptr;  // another optimizer's step
  bool weights_add = true;
  const char* kernel = "sm90_xmma_wgrad_implicit_gemm";
};

// Two passes in a step, each through two convolutions of 60 us whose weights get a gradient (40 us of it, and 10 us that are added), and
// then to the picture that is trained.
Trace draw_style(const DrawnStyle& drawn) {
  ProgramSketch program;
  std::int64_t number = 0, pass = 0;
  program.steps(5, [&](ProgramSketch& p) {
    p.begin("Optimizer.step#LBFGS.step");
    for (int i = 0; i < 2; ++i, ++pass) {
      if (pass % drawn.clears_every == 0)
        p.begin("Optimizer.zero_grad#LBFGS.zero_grad").pass(2).end();
      number += 2;
      for (int layer = 0; layer < 2; ++layer) {
        p.begin_op("autograd::engine::evaluate_function: ConvolutionBackward0",
                   {.sequence = number - 1 - layer, .fwd_thread = 1});
        p.kernel("dgrad", 20).kernel(drawn.kernel, 40).end();
        p.begin_op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
        p.begin_op("torch::autograd::AccumulateGrad");
        if (drawn.weights_add)
          p.begin_op("aten::add_").kernel("add", 10).end();
        else
          p.cpu_op("aten::detach", 6);
        p.end().end();
      }
      p.begin_op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
      p.begin_op("torch::autograd::AccumulateGrad").cpu_op("aten::detach", 6).end().end();
    }
    p.end();
    if (drawn.other) p.begin(drawn.other).pass(2).end();
    p.wait();
  });
  return program.trace();
}

// Each pass: 2 x 40 us of weight gradients, 2 x 10 us of adding, and nothing else of the four kernels.
TEST(UnusedGradientsTest, FindsGradientsThatAPassCanLeaveOutOnItsWay) {
  const auto finding = find_by_rule(draw_style({}), "unused-gradients");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 2);
  EXPECT_EQ(finding->verdict.values[1].integer, 3);
  EXPECT_GE(finding->at_stake_ns, us(200));
  EXPECT_NE(finding->action.pattern.find("go through"), std::string::npos);
  const auto without = find_by_rule(draw_style({.kernel = "other"}), "unused-gradients");
  ASSERT_TRUE(without);
  EXPECT_EQ(finding->at_stake_ns - without->at_stake_ns, us(160));
}

// Micro batches are cleared every few passes, another optimizer may have the weights, and new gradients are no sum.
TEST(UnusedGradientsTest, IsQuietWhereGradientsOnTheWayMayBeUsed) {
  EXPECT_FALSE(find_by_rule(draw_style({.clears_every = 4}), "unused-gradients"));
  EXPECT_FALSE(find_by_rule(draw_style({.other = "Optimizer.step#Adam.step"}), "unused-gradients"));
  EXPECT_FALSE(find_by_rule(draw_style({.weights_add = false}), "unused-gradients"));
}

}  // namespace
}  // namespace lanescope::explain
