#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_cpu_loop_test.h"
#include "lanescope/explain/rules/long_step_share.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Six steps of 100 us on the GPU, one launch each; before the launch of `long_step` the CPU reads a
// file for `read_us`.
ProgramSketch with_long_step(int long_step, std::int64_t read_us) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    if (i == long_step) program.cpu_op("read_file", read_us);
    program.launch({.us = 100}).wait().end();
  }
  return program;
}

// A step is 10 us of launching, 100 us of work less the 1 us that both run, and 3 us to wait.
TEST(LongStepTest, IsTakenOutOfTheNumbersOfAStep) {
  const Trace trace = with_long_step(3, 5000).trace();
  const auto counted = gather_facts(trace, {.step = {}, .count_long_step = true});
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->selection.steady.size(), 5u);
  const std::int64_t with_it = counted->wall.partition.wall_ns;
  const auto facts = gather_facts(trace);
  EXPECT_EQ(facts->selection.steady, (std::vector<std::size_t>{1, 2, 4, 5}));
  EXPECT_EQ(facts->selection.later(), (std::vector<std::size_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(facts->selection.long_step, 3u);
  const std::int64_t length = facts->device().windows[3].length_ns();
  EXPECT_GE(length, us(5000));
  EXPECT_EQ(facts->wall.partition.wall_ns, with_it - length);

  const auto finding = find_by_rule(trace, "long-step");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 4);  // ProfilerStep#4
  EXPECT_EQ(finding->verdict.values[1].integer, length);
  EXPECT_EQ(finding->verdict.values[2].integer, 4);
  EXPECT_EQ(finding->at_stake_ns, us(5000));
  ASSERT_EQ(finding->evidence.size(), 1u);
  EXPECT_EQ(trace.name(finding->evidence[0].slice), "read_file");
}

TEST(LongStepTest, IsNoneWhenTheOthersTakeLongerTogetherOrAreFewOrItIsTheFirst) {
  EXPECT_FALSE(find_by_rule(with_long_step(3, 200).trace(), "long-step"));
  EXPECT_FALSE(find_by_rule(with_long_step(0, 5000).trace(), "long-step"));
  ProgramSketch few;
  for (int i = 0; i < 4; ++i) {
    few.step();
    if (i == 2) few.cpu_op("read_file", 5000);
    few.launch({.us = 100}).wait().end();
  }
  const Trace trace = few.trace();
  const auto facts = gather_facts(trace);
  EXPECT_EQ(facts->selection.steady.size(), 3u);
}

// Sixty kernels of 100 us in the fourth step, one in the others.
TEST(LongStepTest, TellsWhatTheGpuDidMore) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    for (int k = 0; k < (i == 3 ? 60 : 1); ++k) program.launch({.name = "validate", .us = 100});
    program.wait().end();
  }
  const Trace trace = program.trace();
  const auto finding = find_by_rule(trace, "long-step");
  ASSERT_TRUE(finding);
  const Evidence& evidence = finding->evidence.back();
  EXPECT_EQ(trace.name(evidence.slice), "validate");
  EXPECT_EQ(evidence.text.values[0].integer, us(59 * 100));
  EXPECT_EQ(evidence.text.values[2].integer, 60);
}

TEST(LongStepTest, TheChosenStepStays) {
  const Trace trace = with_long_step(3, 5000).trace();
  const auto facts = gather_facts(trace, {.step = 4});
  EXPECT_EQ(facts->selection.steady, (std::vector<std::size_t>{3}));
}

// The gap before its launch is nearly all of it: lone-gap names the cause, and the step is not reported
// twice.
TEST(LongStepTest, IsCoveredByItsCause) {
  const Trace trace = with_long_step(3, 5000).trace();
  const auto facts = gather_facts(trace);
  const auto explanation = run_rules(*facts);
  for (const RuleRun& run : explanation->runs)
    if (std::string_view(run.id) == "long-step") {
      EXPECT_EQ(run.state, RuleRun::State::kCovered);
      EXPECT_EQ(run.covered_by, "lone-gap");
    }
  EXPECT_EQ(explanation->findings.front().rule, "lone-gap");
  EXPECT_THAT(explanation->headline.pattern, ::testing::HasSubstr("longer than the other {}"));
}

// The gap before a long step's work begins while the step before it still lasts. What lies in that
// step counts there, the rest in none of the steady ones.
TEST(LongStepTest, AGapOverItsEdgeIsCut) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    for (int k = 0; k < 3; ++k) {
      if (i == 3 && k == 0) program.pass(50'000);
      program.launch({.us = 100}).wait();
    }
    program.end();
  }
  const Trace trace = program.trace();
  const auto whole = gather_facts(trace, {.step = {}, .count_long_step = true});
  std::int64_t all = 0, cut = 0;
  for (const auto& gap : whole->device().gaps.gaps) all += gap.end_ns - gap.start_ns;
  const std::size_t before = whole->device().gaps.gaps.size();
  const auto facts = gather_facts(trace);
  ASSERT_EQ(facts->selection.long_step, 3u);
  const auto& gaps = facts->device().gaps;
  EXPECT_GT(gaps.gaps.size(), before);
  for (const auto& gap : gaps.gaps) {
    cut += gap.end_ns - gap.start_ns;
    std::int64_t at = gap.start_ns;
    for (const auto& part : gaps.parts_of(gap)) {
      EXPECT_EQ(part.start_ns, at);
      at = part.end_ns;
    }
    EXPECT_EQ(at, gap.end_ns);
    if (inside(facts->steady_windows, gap.start_ns)) {
      EXPECT_LT(gap.end_ns - gap.start_ns, us(50));
    }
  }
  EXPECT_EQ(cut, all);
  const auto sync = find_by_rule(trace, "host-sync");
  ASSERT_TRUE(sync);
  EXPECT_LT(sync->at_stake_ratio, 0.5);
}

// The GPU works in two of eight steps only: what is left without one of them would be nothing.
TEST(LongStepTest, StaysWhereTheOthersDoNothing) {
  ProgramSketch program;
  for (int i = 0; i < 8; ++i) {
    program.step();
    if (i == 0 || i == 4) program.launch({.us = 9000}).wait();
    program.pass(20).end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "long-step"));
}

// Loading on the CPU while the queue is full is not why the step took so long.
TEST(LongStepTest, WhatTheGpuHidesDoesNotExplainIt) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step().begin("saver");
    for (int k = 0; k < (i == 0 || i == 3 ? 60 : 1); ++k) program.launch({.us = 500});
    if (i == 3) program.cpu_op("late", 20'000);
    program.wait().end().end();
  }
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_EQ(facts->selection.long_step, 3u);
  Finding finding;
  rules::explain_long_step(*facts, {facts->device().windows[3]}, {}, finding);
  ASSERT_EQ(finding.explains.size(), 1u);
  EXPECT_LT(finding.explains[0].at_stake_ns, us(100)) << "the GPU was busy in nearly all of it";
}

TEST(LongStepTest, OnTheCpuALongStepIsSeenToo) {
  const auto finding = find_by_rule(
      draw_cpu_loop({.steps_us = {1'000, 1'000, 1'000, 9'000, 1'000, 1'000}}), "long-step");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 8'000 * kUs);
}

// A training step: a forward and a backward kernel. In the step `at` sixteen tensors of a megabyte go to the CPU, 1 ms each, and
// then code without events runs for 20 ms; with `in_first`, in the first step, too.
Trace with_checkpoint(int at, bool in_first) {
  ProgramSketch program;
  for (int i = 0; i < 8; ++i) {
    program.step().launch({.us = 300});
    if (i == at || (in_first && i == 0)) {
      for (int k = 0; k < 16; ++k) {
        program.begin_op("aten::copy_").copy(1000, 1'000'000, "Memcpy DtoH (Device -> Pageable)");
        program.wait("aten::copy_").end();
      }
      program.pass(20'000);
    }
    program.wait().end();
  }
  return program.trace();
}

TEST(LongStepTest, SaysThatACheckpointIsInItAndWhatThatCostsOnAverage) {
  const Trace trace = with_checkpoint(5, false);
  const auto facts = gather_facts(trace);
  const auto explanation = run_rules(*facts);
  const auto finding = std::find_if(explanation->findings.begin(), explanation->findings.end(),
                                    [](const Finding& each) { return each.rule == "long-step"; });
  ASSERT_NE(finding, explanation->findings.end());
  EXPECT_TRUE(finding->leads);
  EXPECT_THAT(finding->brief.pattern, ::testing::HasSubstr("go to the CPU"));
  EXPECT_EQ(finding->brief.values.at(4).integer, 16);
  EXPECT_EQ(finding->brief.values.at(5).integer, 16'000'000);
  EXPECT_EQ(finding->brief.values.at(7).integer, finding->at_stake_ns / 7);  // seven later steps
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("Save less often"));
}

// The first step saves, too: one step in five does.
TEST(LongStepTest, CountsTheFirstStepThatHoldsTheSameWork) {
  const Trace trace = with_checkpoint(5, true);
  const auto facts = gather_facts(trace);
  const auto explanation = run_rules(*facts);
  const auto finding = std::find_if(explanation->findings.begin(), explanation->findings.end(),
                                    [](const Finding& each) { return each.rule == "long-step"; });
  ASSERT_NE(finding, explanation->findings.end());
  EXPECT_TRUE(finding->leads);
  EXPECT_TRUE(finding->brief.pattern.starts_with("Steps {} and {}"));
  EXPECT_EQ(finding->brief.values.back().integer, finding->at_stake_ns / 5);
}

// Near miss: eight small values are read, and then code without events runs: no checkpoint.
TEST(LongStepTest, DoesNotTakeReadsOfValuesForACheckpoint) {
  ProgramSketch program;
  for (int i = 0; i < 8; ++i) {
    program.step().launch({.us = 300});
    if (i == 5) {
      for (int k = 0; k < 8; ++k) program.wait("aten::item");
      program.pass(20'000);
    }
    program.wait().end();
  }
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  const auto explanation = run_rules(*facts);
  for (const Finding& finding : explanation->findings) {
    EXPECT_EQ(finding.action.pattern.find("Save less often"), std::string::npos);
  }
}

// Steps of 1 ms on the GPU; the second one begins `held_us` later, in code without events, or with an operator of its own.
Trace with_held_up_step(int steps, std::int64_t held_us, std::string_view own_op = {}) {
  ProgramSketch program;
  for (int i = 0; i < steps; ++i) {
    program.step();
    if (i == 2) own_op.empty() ? program.pass(held_us) : program.cpu_op(own_op, held_us);
    program.launch({.us = 1000}).wait().end();
  }
  return program.trace();
}

TEST(LongStepTest, AStepThatWasHeldUpDoesNotDecideTheMeanOfAFew) {
  const Trace trace = with_held_up_step(4, 900);
  const auto facts = gather_facts(trace);
  EXPECT_EQ(facts->selection.steady, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(facts->selection.long_step, 2u);
  EXPECT_TRUE(facts->selection.is_held_up);
  const auto explanation = run_rules(*facts);
  EXPECT_THAT(explanation->headline.pattern, ::testing::HasSubstr("with the same calls"));
  EXPECT_THAT(explanation->headline.pattern, ::testing::HasSubstr("GPU-bound"));
  // A limit holds for each step, and a difference of means may come from it.
  const auto counted = gather_facts(trace, {.step = {}, .count_long_step = true});
  EXPECT_EQ(counted->selection.steady.size(), 3u);
}

// Near misses: a little longer; an operator that only this step has; other steps that are not alike.
TEST(LongStepTest, AStepWithWorkOfItsOwnWasNotHeldUp) {
  const auto is_left_out = [](const Trace& trace) {
    return gather_facts(trace)->selection.long_step.has_value();
  };
  EXPECT_TRUE(is_left_out(with_held_up_step(4, 900)));
  EXPECT_FALSE(is_left_out(with_held_up_step(4, 100)));
  EXPECT_FALSE(is_left_out(with_held_up_step(4, 900, "read_file")));
  // Of two later steps the first one, which is like the other, shows which is usual.
  EXPECT_TRUE(is_left_out(with_held_up_step(3, 900)));
  EXPECT_FALSE(is_left_out(with_held_up_step(3, 900, "read_file")));
  ProgramSketch slow_first;
  for (const int held_us : {400, 0, 900})
    slow_first.step().pass(held_us).launch({.us = 1000}).wait().end();
  EXPECT_FALSE(is_left_out(slow_first.trace()));
  ProgramSketch unlike;
  for (int i = 0; i < 4; ++i) unlike.step().pass(i * 400).launch({.us = 1000}).wait().end();
  EXPECT_FALSE(is_left_out(unlike.trace()));
}

}  // namespace
}  // namespace lanescope::explain
