#include <gtest/gtest.h>

#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// The scaler's check, .item() and then 100 us of Python before the optimizer.
ProgramSketch scaled(std::string_view asked) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    program.launch({.us = 10, .op = asked}).wait("aten::item").pass(100);
    program.begin("Optimizer.step#SGD.step").launch({.us = 50}).end().end();
  }
  return program;
}

// The wait is over 2 us after the GPU is done, the next launch ends 1 + 100 + 7 us later: 110 us
// idle, less than the wait before it took.
TEST(ScalerSyncTest, SpeaksOfTheWaitBetweenCheckAndOptimizer) {
  const auto finding = find_by_rule(
      scaled("aten::_amp_foreach_non_finite_check_and_unscale_").trace(), "scaler-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "The gradient scaler");
  EXPECT_EQ(finding->at_stake_ns, us(110));
}

TEST(ScalerSyncTest, SpeaksOfClippingThatAsksForTheNorm) {
  const auto finding = find_by_rule(scaled("aten::_foreach_norm").trace(), "scaler-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "Code that reads a gradient norm");
}

// A norm in the forward pass: the wait after it is the loss's, and the backward pass lies between.
TEST(ScalerSyncTest, IsQuietOnANormOfTheForwardPass) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    program.launch({.us = 10, .op = "aten::linalg_vector_norm"}).wait("aten::item").pass(100);
    program.begin("autograd::engine::evaluate_function: MmBackward0").pass(1).launch({}).end();
    program.begin("Optimizer.step#SGD.step").launch({.us = 50}).end().end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "scaler-sync"));
}

TEST(ScalerSyncTest, IsQuietOnOtherWaits) {
  EXPECT_FALSE(find_by_rule(scaled("aten::mm").trace(), "scaler-sync"));
}

// Norms of the gradients and `reads` numbers of them before each optimizer step.
ProgramSketch reading_norms(int reads) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    program.begin("autograd::engine::evaluate_function: MmBackward0").pass(1);
    program.launch({.us = 300}).end();
    program.launch({.us = 10, .op = "aten::_foreach_norm"});
    for (int k = 0; k < reads; ++k) program.wait("aten::item").pass(30).launch({.us = 10});
    program.begin("Optimizer.step#SGD.step").launch({.us = 50}).end().end();
  }
  return program;
}

TEST(ScalerSyncTest, OneNumberIsClippingALoopOfThemIsNot) {
  EXPECT_TRUE(find_by_rule(reading_norms(1).trace(), "scaler-sync"));
  EXPECT_FALSE(find_by_rule(reading_norms(3).trace(), "scaler-sync"));
  EXPECT_TRUE(find_by_rule(reading_norms(3).trace(), "host-sync"));
}

// The scaler's check, then for each gradient `norm` and .item(), and last the scaler's own .item().
// `parameters`: as many gradients are accumulated before.
ProgramSketch reading_each(std::string_view norm, int gradients, int parameters = 0) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    for (int k = 0; k < parameters; ++k)
      program.cpu_op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1);
    program.launch({.us = 10, .op = "aten::_amp_foreach_non_finite_check_and_unscale_"});
    for (int k = 0; k < gradients; ++k)
      program.launch({.us = 10, .op = norm}).wait("aten::item").pass(30);
    program.launch({.us = 10}).wait("aten::item").pass(30);
    program.begin("Optimizer.step#SGD.step").launch({.us = 50}).end().end();
  }
  return program;
}

TEST(ScalerSyncTest, NamesALoopThatReadsTheNormOfEachGradient) {
  const auto finding =
      find_by_rule(reading_each("aten::linalg_vector_norm", 5, 5).trace(), "scaler-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "Code that reads the norm of each gradient");
  EXPECT_NE(finding->action.pattern.find("takes all norms at once"), std::string::npos);
}

// Norms of the parameters, too, or no gradients in the trace: whose norms they are is unknown.
TEST(ScalerSyncTest, DoesNotSayWhoseNormsTheyAreIfTheirNumberIsAnother) {
  for (const int parameters : {0, 3, 10}) {
    const auto finding = find_by_rule(
        reading_each("aten::linalg_vector_norm", 6, parameters).trace(), "scaler-sync");
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->verdict.values[0].text, "Code that reads norms one by one");
    EXPECT_NE(finding->action.pattern.find("torch._foreach_norm"), std::string::npos);
  }
}

// A round: 10 us of CPU with a kernel of 10 us, a wait until the GPU is done, 30 us of Python. Of 6 rounds 5 go: the GPU's work
// in them and its idle time from one to the next.
TEST(ScalerSyncTest, CountsAllRoundsButOne) {
  const auto finding =
      find_by_rule(reading_each("aten::linalg_vector_norm", 6).trace(), "scaler-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->spared_calls.size(), 3U * 5 * 2);  // of three steps
  ASSERT_EQ(finding->arithmetic.size(), 2U);
  EXPECT_EQ(finding->arithmetic[1].values[0].integer, 6);
  const std::int64_t rounds_ns = finding->arithmetic[1].values[1].integer;
  EXPECT_GE(rounds_ns, us(5 * (30 + 10)));
  EXPECT_LE(rounds_ns, us(5 * (30 + 10 + 20)));
  EXPECT_GE(finding->at_stake_ns, rounds_ns);
}

// A power iteration: each norm is of what was computed after the one before it was read.
TEST(ScalerSyncTest, NamesNoLoopWhereRoundsNeedEachOther) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300});
    for (int k = 0; k < 6; ++k)
      program.launch({.us = 10, .op = "aten::mv"})
          .launch({.us = 10, .op = "aten::linalg_vector_norm"})
          .wait("aten::item")
          .pass(30);
    program.begin("Optimizer.step#SGD.step").launch({.us = 50}).end().end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "scaler-sync"));
}

// As many waits, but none of them reads a norm.
TEST(ScalerSyncTest, NamesNoNormsWhereOtherNumbersAreRead) {
  const auto finding = find_by_rule(reading_each("aten::mul", 5).trace(), "scaler-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "The gradient scaler");
}

// Two calls that clip and read their norm are no loop over the gradients.
TEST(ScalerSyncTest, NamesNoLoopForTwoNorms) {
  const auto finding =
      find_by_rule(reading_each("aten::linalg_vector_norm", 2).trace(), "scaler-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "The gradient scaler");
}

}  // namespace
}  // namespace lanescope::explain
