#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// 300 us of matmul, 60 of log_softmax over `classes`, 40 of nll_loss.
ProgramSketch loss_over(std::string_view dims, std::string_view last = "aten::nll_loss_forward") {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    program.launch({.name = "softmax", .us = 60, .op = "aten::_log_softmax", .dims = dims});
    program.launch({.name = "nll", .us = 40, .op = last, .dims = dims});
    program.end();
  }
  return program;
}

TEST(LogitsLossTest, SpeaksOfALargeVocabulary) {
  const auto finding = find_by_rule(loss_over("[[512, 50257], [512]]").trace(), "logits-loss");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 50257);
  EXPECT_EQ(finding->at_stake_ns, us(100));
}

TEST(LogitsLossTest, IsQuietOnASoftmaxThatNoLossFollows) {
  EXPECT_FALSE(find_by_rule(loss_over("[[512, 50257]]", "aten::mul").trace(), "logits-loss"));
}

TEST(LogitsLossTest, IsQuietOnFewClassesAndNeedsShapes) {
  EXPECT_FALSE(find_by_rule(loss_over("[[512, 1000], [512]]").trace(), "logits-loss"));
  EXPECT_EQ(state_of_rule(loss_over("").trace(), "logits-loss"), RuleRun::State::kNotChecked);
}

// Without shapes kernels of milliseconds show that the logits are large; those of a loss for each pixel do not.
TEST(LogitsLossTest, KnowsLargeLogitsWithoutShapesByTheirTime) {
  const auto of_loss = [](std::int64_t loss_us, std::string_view kernel_name) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.launch({.us = 8000});
      p.launch({.name = kernel_name, .us = loss_us, .op = "aten::cross_entropy_loss"});
    });
    return find_by_rule(program.trace(), "logits-loss");
  };
  const auto finding = of_loss(4000, "cunn_SoftMaxForward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(4000));
  EXPECT_EQ(finding->brief.values.at(0).integer, us(4000));
  EXPECT_FALSE(of_loss(900, "cunn_SoftMaxForward"));
  EXPECT_FALSE(of_loss(4000, "cunn_SpatialSoftMaxForward"));
}

// One call is not chunked, two are: to chunk them would change nothing.
TEST(LogitsLossTest, DoesNotAdviseChunksWhereTheLossRunsInChunks) {
  const auto action_of_calls = [](int calls) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.launch({.us = 300});
      for (int i = 0; i < calls; ++i)
        p.launch({.name = "softmax",
                  .us = 60,
                  .op = "aten::cross_entropy_loss",
                  .dims = "[[512, 50257], [512]]"});
    });
    const auto finding = find_by_rule(program.trace(), "logits-loss");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_TRUE(action_of_calls(1).starts_with("Use a fused or chunked"));
  EXPECT_TRUE(action_of_calls(2).starts_with("It runs in {} chunks already"));
}

// A softmax for the log is no part of the loss: of the 60 us of both, a fused loss spares only its own part.
TEST(LogitsLossTest, DoesNotCountASoftmaxWithoutGradients) {
  constexpr char kDims[] = "[[512, 50257], [512]]";
  const auto stake_ns = [&](bool logs) {
    ProgramSketch program;
    std::int64_t number = 1;
    program.steps(4, [&](ProgramSketch& p) {
      p.launch({.us = 300});
      p.begin_op("aten::cross_entropy_loss",
                 {.sequence = ++number, .fwd_thread = 0, .input_dims = kDims});
      p.launch({.name = "softmax", .us = 60, .op = "aten::_log_softmax", .dims = kDims}).end();
      if (logs) p.launch({.name = "softmax", .us = 60, .op = "aten::log_softmax", .dims = kDims});
      p.begin_op("autograd::engine::evaluate_function: CrossEntropyLossBackward0",
                 {.sequence = number, .fwd_thread = 1});
      p.launch({.us = 100}).end();
    });
    const auto finding = find_by_rule(program.trace(), "logits-loss");
    return finding ? finding->at_stake_ns : 0;
  };
  EXPECT_GT(stake_ns(false), 0);
  EXPECT_EQ(stake_ns(true), stake_ns(false));
}

}  // namespace
}  // namespace lanescope::explain
