#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_cpu_loop_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Ten steps of 4 x 50 us; each third one also writes a checkpoint: 300 us on the CPU.
ProgramSketch with_checkpoints(int steps, int every, std::int64_t us) {
  ProgramSketch program;
  for (int i = 0; i < steps; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.wait();
    if (i % every == every - 1) program.cpu_op("save_checkpoint", us);
    program.end();
  }
  return program;
}

TEST(UnevenStepsTest, SpeaksOfTwoKindsOfStepsAndWhatTheSlowOnesDo) {
  const auto finding = find_by_rule(with_checkpoints(13, 3, 300).trace(), "uneven-steps");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 4);
  EXPECT_EQ(finding->verdict.values[1].integer, 12);
  EXPECT_EQ(finding->verdict.values[2].integer - finding->verdict.values[3].integer, 300'000);
  EXPECT_EQ(finding->verdict.values[4].integer, 3);  // one of three
  EXPECT_EQ(finding->at_stake_ns, 4 * 300'000 / 12);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "save_checkpoint");
}

TEST(UnevenStepsTest, IsQuietAboutOneSlowStepASmallDifferenceAndARamp) {
  EXPECT_FALSE(find_by_rule(with_checkpoints(10, 9, 300).trace(), "uneven-steps"));
  EXPECT_FALSE(find_by_rule(with_checkpoints(13, 3, 30).trace(), "uneven-steps"));
  ProgramSketch ramp;
  for (int i = 0; i < 12; ++i) ramp.step().launch({.us = 100 + 20 * i}).wait().end();
  EXPECT_FALSE(find_by_rule(ramp.trace(), "uneven-steps"));
}

// Neither logging nor evaluation ends by itself.
TEST(UnevenStepsTest, TakesSlowFirstStepsForStartUp) {
  const auto steps = [](int first_slow) {
    ProgramSketch program;
    for (int i = 0; i < 12; ++i) {
      const bool is_slow = i >= first_slow && i < first_slow + 4;
      program.step().launch({.us = is_slow ? 300 : 200}).wait().end();
    }
    return find_by_rule(program.trace(), "uneven-steps");
  };
  const auto at_start = steps(0);
  ASSERT_TRUE(at_start);
  EXPECT_EQ(at_start->kind, FindingKind::kTrust);
  EXPECT_NE(at_start->action.pattern.find("Warm up"), std::string::npos);
  EXPECT_EQ(at_start->verdict.pattern.find("One step in"), std::string::npos);
  const auto later = steps(6);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->kind, FindingKind::kCost);
  EXPECT_EQ(later->verdict.pattern.find("One step in"), std::string::npos);
}

TEST(UnevenStepsTest, IsNotCheckedWithFewSteps) {
  EXPECT_EQ(state_of_rule(with_checkpoints(5, 2, 300).trace(), "uneven-steps"),
            RuleRun::State::kNotChecked);
}

// Eight steps of eight operators with a kernel each. In four of them `slow` operators together take 480 us longer.
Trace with_slow_operators(int slow, int kernels_longer_us = 0) {
  ProgramSketch program;
  for (int i = 0; i < 8; ++i) {
    const bool is_slow = i % 2 == 1;
    program.step();
    for (int k = 0; k < 8; ++k) {
      program.cpu_op("op" + std::to_string(k), 40 + (is_slow && k < slow ? 480 / slow : 0));
      program.launch({.us = 10 + (is_slow ? kernels_longer_us : 0)});
    }
    program.wait().end();
  }
  return program.trace();
}

TEST(UnevenStepsTest, BlamesTheMachineWhereAllStepsDoTheSame) {
  const auto noise = find_by_rule(with_slow_operators(8), "uneven-steps");
  ASSERT_TRUE(noise);
  EXPECT_EQ(noise->kind, FindingKind::kTrust);
  // One operator alone, or longer GPU work, is the program's.
  const auto one = find_by_rule(with_slow_operators(1), "uneven-steps");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->kind, FindingKind::kCost);
  // But no logging, no evaluation and no larger inputs, which would be other calls.
  EXPECT_EQ(one->action.pattern.find("Log, evaluate"), std::string::npos);
  const auto sizes = find_by_rule(with_slow_operators(8, 40), "uneven-steps");
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->kind, FindingKind::kCost);
  EXPECT_NE(sizes->action.pattern.find("sort or pad inputs"), std::string::npos);
}

TEST(UnevenStepsTest, OnTheCpuUnevenStepsAreSeenToo) {
  const auto finding =
      find_by_rule(draw_cpu_loop({.steps_us = {1'000, 1'000, 2'000, 1'000, 2'000, 1'000, 2'000}}),
                   "uneven-steps");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 500 * kUs);  // 3 of 6 take 1 ms more
}

// Two of nine steady steps run a function of the program that the others do not call.
TEST(UnevenStepsTest, NamesTheFunctionThatOnlySlowStepsCall) {
  const auto found = [](bool in_all, std::int64_t length_us = 1'990) {
    ProgramSketch program;
    for (int i = 0; i < 10; ++i) {
      program.step();
      for (int k = 0; k < 4; ++k) program.launch({.us = 50});
      program.wait();
      const bool is_slow = i == 4 || i == 9;
      if (is_slow || in_all) {
        const std::int64_t start_us = program.cpu_us();
        program.pass(is_slow ? 2'000 : 10);
        program.sketch().slice("python_function", "train.py(12): export",
                               ProgramSketch::at(start_us), us(is_slow ? length_us : 8));
      }
      program.end();
    }
    return find_by_rule(program.trace(), "uneven-steps");
  };
  const auto finding = found(false);
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->names_cause);
  EXPECT_EQ(finding->action.pattern, "Run {} less often, or outside of the steps");
  EXPECT_EQ(finding->action.values.at(0).text, "train.py(12): export");
  // Near misses: it goes on after the step; each step calls it.
  const auto longer = found(false, 2'600);
  ASSERT_TRUE(longer);
  EXPECT_FALSE(longer->names_cause);
  const auto in_all = found(true);
  ASSERT_TRUE(in_all);
  EXPECT_FALSE(in_all->names_cause);
}

// Two steps evaluate: the forward kernels run ten times more, the backward pass once.
TEST(UnevenStepsTest, KnowsAnEvaluationByItsMissingBackwardPass) {
  const auto action = [](bool with_backward) {
    ProgramSketch program;
    constexpr char kNode[] = "autograd::engine::evaluate_function: MmBackward0";
    for (int i = 0; i < 10; ++i) {
      program.step();
      const int rounds = i == 4 || i == 9 ? 10 : 0;
      for (int k = 0; k <= rounds; ++k) {
        program.launch({.us = 50});
        if (k == 0 || with_backward) program.begin_op(kNode).kernel("gemm", 50).end();
      }
      program.wait().end();
    }
    const auto finding = find_by_rule(program.trace(), "uneven-steps");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_TRUE(action(false).starts_with("An evaluation?"));
  EXPECT_FALSE(action(true).starts_with("An evaluation?"));
}

// The same without marks: each wait ends an iteration that was found. It may be a part of the program's own step.
TEST(UnevenStepsTest, NamesNoFunctionOfIterationsThatWereFound) {
  ProgramSketch program;
  for (int i = 0; i < 12; ++i) {
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.wait("aten::to");
    if (i != 4 && i != 9) continue;
    const std::int64_t start_us = program.cpu_us();
    program.pass(400);
    program.sketch().slice("python_function", "serve.py(12): step", ProgramSketch::at(start_us),
                           us(390));
  }
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts->steps.found);
  const auto finding = find_by_rule(trace, "uneven-steps");
  ASSERT_TRUE(finding);
  EXPECT_FALSE(finding->names_cause);
}

}  // namespace
}  // namespace lanescope::explain
