#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnSlowBackward {
  std::string op = "aten::grid_sampler";
  std::string node = "GridSamplerBackward0";
  std::int64_t forward_us = 10, backward_us = 80;
  int calls = 1;               // a step
  int runs = 1;                // of each node
  bool records_again = false;  // the node runs its forward operator again, for a later backward
};

void node(ProgramSketch& p, const DrawnSlowBackward& drawn, std::int64_t number) {
  p.begin_op("autograd::engine::evaluate_function: " + drawn.node,
             {.sequence = number, .fwd_thread = 1});
  if (drawn.records_again) p.begin_op(drawn.op, {.sequence = number}).pass(1).end();
  p.kernel("backward_kernel", drawn.backward_us).end();
}

// Four steps of a product of 100 us and the operator; the first step is left out.
Trace draw_slow_backward(const DrawnSlowBackward& drawn) {
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    p.kernel("gemm", 100);
    const std::int64_t first = number;
    for (int i = 0; i < drawn.calls; ++i) {
      // An operator that makes no node has the number of the next one.
      p.begin_op("aten::zero_", {.sequence = number}).pass(1).end();
      p.begin_op(drawn.op, {.sequence = number++});
      if (drawn.forward_us > 0) p.kernel("forward_kernel", drawn.forward_us);
      p.end();
    }
    for (int run = 0; run < drawn.runs; ++run)
      for (std::int64_t i = number - 1; i >= first; --i) node(p, drawn, i);
  });
  return program.trace();
}

// 80 us against 10 us: 8 times. 80 - 3 x 10 us are at stake.
TEST(SlowBackwardTest, SpeaksOfANodeThatTakesAMultipleOfItsOperator) {
  const auto finding = find_by_rule(draw_slow_backward({}), "slow-backward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values.at(0).text, "aten::grid_sampler");
  EXPECT_DOUBLE_EQ(finding->verdict.values.at(1).real, 8);
  EXPECT_EQ(finding->verdict.values.at(2).integer, us(80));
  EXPECT_EQ(finding->verdict.values.at(3).integer, us(10));
  EXPECT_EQ(finding->at_stake_ns, us(50));
  EXPECT_EQ(finding->sample_count, 3u);
}

// What a backward pass usually takes, and what becomes several kernels (aten::pow takes 3.5 times).
TEST(SlowBackwardTest, IsQuietBelowFiveTimes) {
  EXPECT_FALSE(find_by_rule(draw_slow_backward({.backward_us = 26}), "slow-backward"));
  EXPECT_FALSE(find_by_rule(draw_slow_backward({.backward_us = 50}), "slow-backward"));
}

// The node of a C++ function has the number of an operator that did not make it.
TEST(SlowBackwardTest, IsQuietAboutNodesWhoseOperatorIsNotRecorded) {
  EXPECT_FALSE(find_by_rule(draw_slow_backward({.node = "torch::autograd::CppNode<Lookup>"}),
                            "slow-backward"));
  EXPECT_FALSE(find_by_rule(draw_slow_backward({.node = "OtherBackward0"}), "slow-backward"));
}

// A checkpoint runs the forward part again; the rule recompute reports that.
TEST(SlowBackwardTest, IsQuietAboutForwardWorkThatRunsAgain) {
  EXPECT_FALSE(find_by_rule(draw_slow_backward({.records_again = true}), "slow-backward"));
}

// Two passes of 40 us each: the rule repeated-backward reports that.
TEST(SlowBackwardTest, CountsOnePassOfANode) {
  EXPECT_FALSE(find_by_rule(draw_slow_backward({.backward_us = 40, .runs = 2}), "slow-backward"));
}

// A view costs nothing, its node fills a gradient as large as the tensor, for each of the views.
TEST(SlowBackwardTest, KnowsViewsTakenOneByOne) {
  const DrawnSlowBackward drawn{.op = "aten::select",
                                .node = "SelectBackward0",
                                .forward_us = 0,
                                .backward_us = 20,
                                .calls = 4};
  const auto finding = find_by_rule(draw_slow_backward(drawn), "slow-backward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(80));
  EXPECT_NE(finding->action.pattern.find("unbind"), std::string::npos);
}

// Slices may be corners, which no split takes: the advice has a condition, and nothing is predicted.
TEST(SlowBackwardTest, AdvisesASplitOnlyIfSlicesAreTheWholeTensor) {
  const auto finding = [](const char* op, const char* node) {
    return find_by_rule(
               draw_slow_backward(
                   {.op = op, .node = node, .forward_us = 0, .backward_us = 20, .calls = 4}),
               "slow-backward")
        .value_or(Finding());
  };
  const Finding slices = finding("aten::slice", "SliceBackward0");
  EXPECT_EQ(slices.action.pattern.find("If the slices together are the whole tensor"), 0u);
  EXPECT_TRUE(slices.gain_is_bound);
  EXPECT_FALSE(finding("aten::select", "SelectBackward0").gain_is_bound);
}

// These copy each gradient once, as their forward part would have to.
TEST(SlowBackwardTest, IsQuietAboutViewsThatAreTakenTogether) {
  EXPECT_FALSE(find_by_rule(
      draw_slow_backward(
          {.op = "aten::unbind", .node = "UnbindBackward0", .forward_us = 0, .backward_us = 60}),
      "slow-backward"));
}

// An autograd.Function of the program: 12 us of CPU time forward, 502 us backward. At most 3 x 12 us
// and 20 us for the node are usual: 446 us are more.
TEST(SlowBackwardTest, ComparesTimesOfTheCpuWhereThereIsNoGpu) {
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    p.cpu_op("aten::mm", 500);
    p.begin_op("Clip", {.sequence = number}).pass(10).end();
    p.begin_op("autograd::engine::evaluate_function: ClipBackward",
               {.sequence = number++, .fwd_thread = 1});
    p.pass(500).end();
  });
  const auto finding = find_by_rule(program.trace(), "slow-backward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(446));
  EXPECT_NE(finding->action.pattern.find("code of the program"), std::string::npos);
}

// torch's own node for a module's full backward hooks: its forward part is a view of no cost.
TEST(SlowBackwardTest, NamesTheBackwardHooksOfModules) {
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    p.cpu_op("aten::mm", 500);
    p.begin_op("BackwardHookFunction", {.sequence = number}).pass(5).end();
    p.begin_op("autograd::engine::evaluate_function: BackwardHookFunctionBackward",
               {.sequence = number++, .fwd_thread = 1});
    p.pass(500).end();
  });
  const auto finding = find_by_rule(program.trace(), "slow-backward");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->brief.pattern.find("Full backward hooks"), std::string::npos);
  EXPECT_EQ(finding->action.pattern.find("code of the program"), std::string::npos);
}

// One call of eight whose core was taken for 50 ms says nothing of the other seven.
TEST(SlowBackwardTest, LeavesOneLongCallOfManyAlone) {
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    for (int call = 0; call < 2; ++call) {
      p.begin_op("Clip", {.sequence = number}).pass(98).end();
      p.begin_op("autograd::engine::evaluate_function: ClipBackward",
                 {.sequence = number, .fwd_thread = 1});
      p.pass(number++ == 5 ? 50'000 : 148).end();
    }
  });
  EXPECT_FALSE(find_by_rule(program.trace(), "slow-backward"));
}

// The same program, with a backward() of these times in its steps; the first step is left out.
Trace clip_on_cpu(std::initializer_list<std::int64_t> backward_us, std::string_view inside = {}) {
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(static_cast<int>(backward_us.size()), [&](ProgramSketch& p) {
    p.cpu_op("aten::mm", 500);
    p.begin_op("Clip", {.sequence = number}).pass(10).end();
    p.begin_op("autograd::engine::evaluate_function: ClipBackward",
               {.sequence = number, .fwd_thread = 1});
    const std::int64_t time_us = backward_us.begin()[number++];
    if (inside.empty())
      p.pass(time_us);
    else
      p.cpu_op(inside, time_us);
    p.end();
  });
  return program.trace();
}

// Another program took the CPU in one step: 4 ms of 4 steps are not what a step costs.
TEST(SlowBackwardTest, OneDisturbedStepIsNotWhatAStepCosts) {
  EXPECT_FALSE(find_by_rule(clip_on_cpu({20, 20, 20, 4'000, 20}), "slow-backward"));
  const auto finding = find_by_rule(clip_on_cpu({20, 500, 500, 4'000, 500}), "slow-backward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(446));  // of the middle step
}

// The core was taken in most calls: the shortest of the equal calls, 30 us, is what the node takes.
TEST(SlowBackwardTest, TheShortestOfEqualCallsCountsOnTheCpu) {
  EXPECT_FALSE(find_by_rule(clip_on_cpu({20, 4'000, 30, 4'000, 4'000}), "slow-backward"));
  const auto finding = find_by_rule(clip_on_cpu({20, 4'000, 500, 4'000, 4'000}), "slow-backward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(446));
}

// Forward calls of 10, 40 and 40 us: the core is taken so often that no call can be trusted.
TEST(SlowBackwardTest, IsQuietWhereMostCallsAreDisturbed) {
  const auto drawn = [](std::initializer_list<std::int64_t> forward_us,
                        std::int64_t backward_us = 500) {
    ProgramSketch program;
    std::int64_t number = 0;
    program.steps(static_cast<int>(forward_us.size()), [&](ProgramSketch& p) {
      p.cpu_op("aten::mm", 500);
      p.begin_op("Clip", {.sequence = number}).pass(forward_us.begin()[number]).end();
      p.begin_op("autograd::engine::evaluate_function: ClipBackward",
                 {.sequence = number++, .fwd_thread = 1});
      p.pass(backward_us).end();
    });
    return find_by_rule(program.trace(), "slow-backward");
  };
  EXPECT_FALSE(drawn({10, 10, 40, 40}));
  EXPECT_TRUE(drawn({10, 10, 40, 40}, 1'000));  // 25 times the usual 40 us
  EXPECT_TRUE(drawn({10, 10, 10, 40}));
}

// autograd.grad(is_grads_batched=True): 24 gradients go through one node, whose mm runs as a matmul of 24.
TEST(SlowBackwardTest, IsQuietAboutNodesThatTakeManyGradientsAtOnce) {
  const auto inputs = [](const char* dims) {
    return testing::Fields{.input_dims = dims, .input_types = R"(["float", "float"])"};
  };
  const auto drawn = [&](const char* inner_dims) {
    ProgramSketch program;
    std::int64_t number = 0;
    program.steps(4, [&](ProgramSketch& p) {
      p.begin_op("aten::mm", {.sequence = number}).kernel("gemm", 10).end();
      p.begin_op("autograd::engine::evaluate_function: MmBackward0",
                 {.sequence = number++, .fwd_thread = 1});
      p.begin_op("aten::mm", inputs("[[64, 256], [256, 256]]"));
      p.begin_op("aten::matmul", inputs(inner_dims)).kernel("gemm", 240).end();
      p.end().end();
    });
    return find_by_rule(program.trace(), "slow-backward");
  };
  EXPECT_FALSE(drawn("[[24, 64, 256], [256, 256]]"));
  EXPECT_TRUE(drawn("[[64, 256], [256, 256]]"));
}

// A hook of FSDP waits for other ranks in its node.
TEST(SlowBackwardTest, IsQuietAboutNodesThatCommunicateOnTheCpu) {
  EXPECT_TRUE(find_by_rule(clip_on_cpu({500, 500, 500, 500}, "aten::mul"), "slow-backward"));
  EXPECT_FALSE(find_by_rule(clip_on_cpu({500, 500, 500, 500}, "c10d::_reduce_scatter_base_"),
                            "slow-backward"));
}

// x[::2] is one part, whose gradient no other call takes: what helps is to compute less.
TEST(SlowBackwardTest, KnowsSlicesThatSkipElements) {
  const auto action = [](const char* step) {
    ProgramSketch program;
    std::int64_t number = 0;
    program.steps(4, [&](ProgramSketch& p) {
      p.kernel("gemm", 100);
      for (int i = 0; i < 4; ++i)
        p.begin_op("aten::slice",
                   {.sequence = number++,
                    .input_dims = "[[64, 64], [], [], [], []]",
                    .input_types = R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])",
                    .concrete_inputs = std::string(R"(["", "0", "0", "64", ")") + step + R"("])"})
            .end();
      for (std::int64_t i = number - 1; i >= number - 4; --i)
        p.begin_op("autograd::engine::evaluate_function: SliceBackward0",
                   {.sequence = i, .fwd_thread = 1})
            .kernel("fill", 20)
            .end();
    });
    const auto finding = find_by_rule(program.trace(), "slow-backward");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action("2").find("that stride"), std::string::npos);
  EXPECT_NE(action("1").find("If the slices together are the whole tensor"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain
