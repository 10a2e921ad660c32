#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Each step makes five nodes and goes over them `sweeps` times, 40 us of work a node.
Trace backward(int sweeps, bool same_nodes = true) {
  ProgramSketch program;
  int step = 0;
  program.steps(6, [&](ProgramSketch& p) {
    ++step;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    for (int sweep = 0; sweep < sweeps; ++sweep)
      for (int node = 0; node < 5; ++node) {
        const std::int64_t number = step * 1000 + node + (same_nodes ? 0 : sweep * 100);
        p.begin_op("autograd::engine::evaluate_function: MmBackward0",
                   {.sequence = number, .fwd_thread = 1});
        p.kernel("gemm", 40).end();
      }
  });
  return program.trace();
}

// Three sweeps: two of them, 5 x 40 us each, are at stake. The GPU is always busy.
TEST(RepeatedBackwardTest, CountsAllRunsButTheFirst) {
  const auto finding = find_by_rule(backward(3), "repeated-backward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 5);  // nodes that run again
  EXPECT_EQ(finding->verdict.values[1].integer, 5);  // nodes
  EXPECT_DOUBLE_EQ(finding->verdict.values[2].real, 3);
  EXPECT_EQ(finding->at_stake_ns, us(2 * 5 * 40));
}

// Each of three losses has a pass of its own over five nodes of 40 us, which ends at a parameter. Only backward() adds to it.
Trace gradients_of_losses(bool adds) {
  ProgramSketch program;
  std::int64_t first = 0;
  const std::string evaluate = "autograd::engine::evaluate_function: ";
  program.steps(6, [&](ProgramSketch& p) {
    first += 1000;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    for (int loss = 0; loss < 3; ++loss) {
      p.begin_op("aten::ones_like").pass(1).end();
      for (int node = 4; node >= 0; --node)
        p.begin_op(evaluate + "MmBackward0", {.sequence = first + node, .fwd_thread = 1})
            .begin_op("MmBackward0", {.sequence = first + node})
            .kernel("gemm", 40)
            .end()
            .end();
      p.begin_op(evaluate + "torch::autograd::AccumulateGrad");
      if (adds) p.begin_op("torch::autograd::AccumulateGrad").pass(1).end();
      p.pass(1).end();
    }
  });
  return program.trace();
}

// torch.autograd.grad() of each loss: the program uses each gradient, so nothing is promised.
TEST(RepeatedBackwardTest, DoesNotAddLossesWhoseGradientsAreReturned) {
  const auto returned = find_by_rule(gradients_of_losses(false), "repeated-backward");
  ASSERT_TRUE(returned);
  EXPECT_EQ(returned->kind, FindingKind::kWhere);
  EXPECT_EQ(returned->at_stake_ns, 0);
  EXPECT_THAT(returned->action.pattern, ::testing::Not(::testing::HasSubstr("Add the losses")));
  const auto added = find_by_rule(gradients_of_losses(true), "repeated-backward");
  ASSERT_TRUE(added);
  EXPECT_EQ(added->at_stake_ns, us(2 * 5 * 40));
  EXPECT_THAT(added->action.pattern, ::testing::HasSubstr("Add the losses"));
}

// A GAN: one network's step lies between the two passes over the other.
TEST(RepeatedBackwardTest, SaysDetachWhereAnOptimizerStepsBetweenThePasses) {
  const auto action_with_step = [](bool is_between) {
    ProgramSketch program;
    std::int64_t first = 0;
    program.steps(6, [&](ProgramSketch& p) {
      first += 1000;
      p.begin_op("aten::mm").kernel("gemm", 100).end();
      for (int sweep = 0; sweep < 2; ++sweep) {
        for (int node = 0; node < 5; ++node)
          p.begin_op("autograd::engine::evaluate_function: MmBackward0",
                     {.sequence = first + node, .fwd_thread = 1})
              .kernel("gemm", 40)
              .end();
        if (sweep == (is_between ? 0 : 1)) p.begin("Optimizer.step#Adam.step").pass(5).end();
      }
    });
    const auto finding = find_by_rule(program.trace(), "repeated-backward");
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action_with_step(true), ::testing::HasSubstr("detach()"));
  EXPECT_THAT(action_with_step(false), ::testing::HasSubstr("Add the losses"));
}

// A hook of a node solves by backward passes over one graph: each needs the one before it.
TEST(RepeatedBackwardTest, IsQuietAboutPassesInsideOfANode) {
  ProgramSketch program;
  int step = 0;
  program.steps(6, [&](ProgramSketch& p) {
    ++step;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    p.begin_op("autograd::engine::evaluate_function: TanhBackward0",
               {.sequence = step * 1000 + 900, .fwd_thread = 1});
    for (int sweep = 0; sweep < 3; ++sweep)
      for (int node = 0; node < 5; ++node) {
        p.begin_op("autograd::engine::evaluate_function: MmBackward0",
                   {.sequence = step * 1000 + node, .fwd_thread = 1});
        p.kernel("gemm", 40).end();
      }
    p.end();
  });
  EXPECT_FALSE(find_by_rule(program.trace(), "repeated-backward"));
}

TEST(RepeatedBackwardTest, IsQuietAboutOneSweep) {
  EXPECT_FALSE(find_by_rule(backward(1), "repeated-backward"));
}

// A penalty on gradients: adding the losses up would not help.
TEST(RepeatedBackwardTest, KnowsABackwardPassThatIsDifferentiated) {
  ProgramSketch program;
  int step = 0;
  program.steps(6, [&](ProgramSketch& p) {
    ++step;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    for (int sweep = 0; sweep < 2; ++sweep) {
      for (int node = 0; node < 5; ++node) {
        p.begin_op("autograd::engine::evaluate_function: ReluBackward0",
                   {.sequence = step * 1000 + node, .fwd_thread = 1});
        p.kernel("relu", 40).end();
      }
      p.begin_op("autograd::engine::evaluate_function: ThresholdBackwardBackward0",
                 {.sequence = step * 1000 + 500 + sweep, .fwd_thread = 1});
      p.kernel("where", 10).end();
    }
  });
  const auto finding = find_by_rule(program.trace(), "repeated-backward");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->brief.pattern.find("create_graph"), std::string::npos);
  EXPECT_EQ(finding->action.pattern.find("Add the losses"), std::string::npos);
}

// A text in `parts` of three operators, on the CPU. After each part the backward pass goes through it and
// all before it; or all parts come first.
Trace parts(int parts, bool goes_on_between) {
  ProgramSketch program;
  std::int64_t first = 0;
  program.steps(4, [&](ProgramSketch& p) {
    first += 1000;
    const auto forward = [&](int part) {
      for (int i = 0; i < 3; ++i)
        p.begin_op("aten::addmm", {.sequence = first + part * 3 + i}).pass(8).end();
    };
    for (int part = 0; !goes_on_between && part < parts; ++part) forward(part);
    for (int part = 0; part < parts; ++part) {
      if (goes_on_between) forward(part);
      for (int node = part * 3 + 2; node >= 0; --node)
        p.begin_op("autograd::engine::evaluate_function: AddmmBackward0",
                   {.sequence = first + node, .fwd_thread = 1})
            .pass(18)
            .end();
    }
  });
  return program.trace();
}

// Four parts: 3 nodes run 4 times, 3 run 3 times, 3 twice. Runs after the first: 18 of 20 us.
TEST(RepeatedBackwardTest, SeesAStateThatKeepsItsHistory) {
  const auto finding = find_by_rule(parts(4, true), "repeated-backward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(18 * 20));
  EXPECT_NE(finding->action.pattern.find("Detach the state"), std::string::npos);
  // Several losses of one forward pass.
  const auto losses = find_by_rule(parts(4, false), "repeated-backward");
  ASSERT_TRUE(losses);
  EXPECT_NE(losses->action.pattern.find("Add the losses"), std::string::npos);
}

// Micro-batches make new nodes each time.
TEST(RepeatedBackwardTest, IsQuietAboutNewNodes) {
  EXPECT_FALSE(find_by_rule(backward(3, false), "repeated-backward"));
}

// torch.autograd.grad(create_graph=True): the first pass runs operators whose gradients are recorded, and the
// second pass goes over their nodes, which torch numbered on autograd's thread, and then over the first ones again.
Trace slope_and_penalty(bool records_gradients) {
  ProgramSketch program;
  std::int64_t first = 0;
  program.steps(6, [&](ProgramSketch& p) {
    first += 1000;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    const auto pass = [&](bool makes_nodes) {
      for (int node = 4; node >= 0; --node) {
        p.begin_op("autograd::engine::evaluate_function: SiluBackward0",
                   {.sequence = first + node, .fwd_thread = 1});
        p.begin_op("SiluBackward0", {.sequence = first + node});
        p.begin_op("aten::mul", {.sequence = makes_nodes ? first + 500 - node : -1});
        p.kernel("mul", 40).end().end().end();
      }
    };
    pass(records_gradients);
    for (int node = 500; node > 495; --node)
      p.begin_op("autograd::engine::evaluate_function: MulBackward0",
                 {.sequence = first + node, .fwd_thread = 2})
          .kernel("mul", 10)
          .end();
    pass(false);
  });
  return program.trace();
}

// torch.autograd.grad(u, x, create_graph=True), then by y: both passes go over all five nodes, and then backward() over nodes of
// these. The second derivative, of another output, begins at a node of its own.
Trace derivatives(bool is_same_output) {
  ProgramSketch program;
  std::int64_t first = 0;
  program.steps(6, [&](ProgramSketch& p) {
    first += 1000;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    for (int input = 0; input < 2; ++input) {
      p.begin_op("aten::ones_like").pass(1).end();
      if (!is_same_output && input == 1)
        p.begin_op("autograd::engine::evaluate_function: SliceBackward0",
                   {.sequence = first + 10, .fwd_thread = 1})
            .kernel("slice", 10)
            .end();
      for (int node = 4; node >= 0; --node)
        p.begin_op("autograd::engine::evaluate_function: TanhBackward0",
                   {.sequence = first + node, .fwd_thread = 1})
            .kernel("tanh", 40)
            .end();
    }
    p.begin_op("aten::mul").pass(1).end();
    p.begin_op("autograd::engine::evaluate_function: TanhBackwardBackward0",
               {.sequence = first + 500, .fwd_thread = 2})
        .kernel("tanh", 10)
        .end();
  });
  return program.trace();
}

// The second pass' five nodes of 40 us. Of two outputs, one call cannot take both.
TEST(RepeatedBackwardTest, JoinsTheGradientsOfOneOutput) {
  const auto joined = find_by_rule(derivatives(true), "repeated-backward");
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->at_stake_ns, us(5 * 40));
  EXPECT_THAT(joined->action.pattern, ::testing::HasSubstr("torch.autograd.grad(u, (x, y, t)"));
  const auto two = find_by_rule(derivatives(false), "repeated-backward");
  ASSERT_TRUE(two);
  EXPECT_THAT(two->action.pattern, ::testing::HasSubstr("penalty"));
}

// torch.autograd.grad(u, x, create_graph=True) and grad(u, y, ...) with no operator between them. Each pass makes nodes, and backward()
// goes over those of both: five of 10 us for each.
Trace joined_derivatives(bool is_same_output) {
  ProgramSketch program;
  std::int64_t first = 0;
  const std::string evaluate = "autograd::engine::evaluate_function: ";
  program.steps(6, [&](ProgramSketch& p) {
    first += 1000;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    p.begin_op("aten::ones_like").pass(1).end();
    for (int input = 0; input < 2; ++input) {
      const std::int64_t newest = first + 4 + (is_same_output ? 0 : input);
      for (std::int64_t node = newest; node >= first; --node)
        p.begin_op(evaluate + "TanhBackward0", {.sequence = node, .fwd_thread = 1})
            .begin_op("TanhBackward0", {.sequence = node})
            .begin_op("aten::tanh_backward",
                      {.sequence = first + 500 + input * 100 + newest - node})
            .kernel("tanh", 40)
            .end()
            .end()
            .end();
      p.begin_op(evaluate + "torch::autograd::AccumulateGrad").pass(1).end();
    }
    p.begin_op("aten::mul").pass(1).end();
    for (const int input : {1, 0})
      for (int node = 4; node >= 0; --node)
        p.begin_op(evaluate + "TanhBackwardBackward0",
                   {.sequence = first + 500 + input * 100 + node, .fwd_thread = 2})
            .kernel("tanh", 10)
            .end();
    p.begin_op(evaluate + "torch::autograd::AccumulateGrad")
        .begin_op("torch::autograd::AccumulateGrad")
        .pass(1)
        .end()
        .end();
  });
  return program.trace();
}

// The second pass' five nodes of 40 us, and the five of 10 us that it made. Another output begins at a node of its own.
TEST(RepeatedBackwardTest, JoinsPassesWithoutAnOperatorBetweenThem) {
  const auto joined = find_by_rule(joined_derivatives(true), "repeated-backward");
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->at_stake_ns, us(5 * 40 + 5 * 10));
  EXPECT_THAT(joined->action.pattern, ::testing::HasSubstr("torch.autograd.grad(u, (x, y, t)"));
  const auto two = find_by_rule(joined_derivatives(false), "repeated-backward");
  ASSERT_TRUE(two);
  EXPECT_THAT(two->action.pattern, ::testing::HasSubstr("penalty"));
}

TEST(RepeatedBackwardTest, KnowsNodesThatABackwardPassMade) {
  const auto penalty = find_by_rule(slope_and_penalty(true), "repeated-backward");
  ASSERT_TRUE(penalty);
  EXPECT_NE(penalty->brief.pattern.find("create_graph"), std::string::npos);
  EXPECT_EQ(penalty->action.pattern.find("Add the losses"), std::string::npos);
  // Two losses: the operators of a backward pass record nothing.
  const auto losses = find_by_rule(slope_and_penalty(false), "repeated-backward");
  ASSERT_TRUE(losses);
  EXPECT_NE(losses->action.pattern.find("Add the losses"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain
