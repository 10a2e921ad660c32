#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kConvolution[] = "aten::cudnn_convolution";

// A recording without steps: 300 ms until the context is there, then six convolutions. A cudaFree of
// 200 ms is in the n-th of them.
Trace draw_library_setup(int slow_one, bool gpu_works = false) {
  ProgramSketch program;
  program.begin_op("aten::empty").call("cudaDeviceGetStreamPriorityRange", 300'000).end();
  for (int i = 0; i < 6; ++i) {
    if (gpu_works && i == slow_one) program.kernel("other", 400'000);
    program.begin_op(kConvolution);
    if (i == slow_one) program.call("cudaFree", 200'000);
    program.kernel("conv", 50).end();
  }
  return program.trace();
}

TEST(LibrarySetupTest, CountsTheContextAndTheLibrary) {
  const auto finding = find_by_rule(draw_library_setup(0), "library-setup");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
  EXPECT_EQ(finding->verdict.values.at(0).integer, us(500'003));  // all of the operator
  EXPECT_EQ(finding->verdict.values.at(1).integer, 2);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, us(300'000));
  ASSERT_EQ(finding->evidence.size(), 2u);
}

// The operator ran before: what is slow now is no first use.
TEST(LibrarySetupTest, LeavesOutLaterCallsOfTheOperator) {
  const auto finding = find_by_rule(draw_library_setup(3), "library-setup");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, us(300'000));
}

// cudaFree waits for what runs.
TEST(LibrarySetupTest, LeavesOutCallsDuringWhichTheGpuWorks) {
  const auto finding = find_by_rule(draw_library_setup(0, true), "library-setup");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, us(300'000));
}

TEST(LibrarySetupTest, IsQuietBelowATenthOfASecond) {
  ProgramSketch program;
  program.begin_op("aten::empty").call("cudaDeviceGetStreamPriorityRange", 60'000).end();
  program.launch({}).launch({});
  EXPECT_FALSE(find_by_rule(program.trace(), "library-setup"));
}

// Most of the recording after its first launch is that start-up: it is what bounds it, and not the
// allocator.
TEST(LibrarySetupTest, DecidesTheHeadline) {
  ProgramSketch program;
  program.launch({}).launch({});
  program.begin_op(kConvolution).call("cudaFree", 200'000).kernel("conv", 50).end();
  program.launch({}).launch({});
  const Trace trace = program.trace();
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto explanation = run_rules(*facts, {});
  ASSERT_TRUE(explanation);
  EXPECT_TRUE(explanation->headline.pattern.starts_with("Start-up: "))
      << explanation->headline.pattern;
  EXPECT_FALSE(find_by_rule(trace, "allocator-calls"));
}

// Calls of an operator with one kernel each; some are slow, on the CPU, before they launch.
Trace draw_first_calls(const std::vector<int>& slow_ones, int calls, bool is_cpu_work = false) {
  ProgramSketch program;
  program.launch({});
  for (int i = 0; i < calls; ++i) {
    program.begin_op("aten::scaled_dot_product_attention");
    program.begin_op(is_cpu_work ? "aten::copy_" : "aten::_cudnn_attention_forward");
    if (std::find(slow_ones.begin(), slow_ones.end(), i) != slow_ones.end()) program.pass(60'000);
    program.kernel("attention", 5).end().end();
  }
  return program.trace();
}

std::optional<Finding> headline_of(const Trace& trace) {
  const auto facts = gather_facts(trace);
  if (!facts) return std::nullopt;
  const auto all = run_rules(*facts, {});
  if (!all || all->findings.empty() || all->findings.front().rule != "host-bound")
    return std::nullopt;
  return all->findings.front();
}

// One plan for each shape: the first of every four calls takes 60 ms.
TEST(LibrarySetupTest, FirstCallsOfAnOperatorAreNoSlowLaunches) {
  const auto each_shape = headline_of(draw_first_calls({0, 4, 8}, 12));
  ASSERT_TRUE(each_shape);
  EXPECT_TRUE(each_shape->verdict.pattern.starts_with("Start-up: "));
  EXPECT_EQ(each_shape->brief.pattern, "{} took {} on average in {} of {} calls, the others {}");
  EXPECT_EQ(each_shape->brief.values.at(0).text, "aten::scaled_dot_product_attention");
  EXPECT_EQ(each_shape->brief.values.at(2).integer, 3);
  EXPECT_TRUE(each_shape->action.pattern.starts_with("Each new shape"));
  const auto once = headline_of(draw_first_calls({0}, 12));
  ASSERT_TRUE(once);
  EXPECT_EQ(once->brief.pattern, "The first call of {} took {}, the others {}");
  EXPECT_TRUE(once->action.pattern.starts_with("That is paid once"));
}

// A call in the middle was disturbed by something else, always slow is usual, and copies convert on the CPU.
TEST(LibrarySetupTest, SlowCallsThatAreNotTheFirstAreNoStartUp) {
  for (const Trace& trace : {draw_first_calls({5}, 12), draw_first_calls({0, 1, 2}, 3),
                             draw_first_calls({0}, 12, true)}) {
    const auto finding = headline_of(trace);
    ASSERT_TRUE(finding);
    EXPECT_TRUE(finding->verdict.pattern.starts_with("CPU-bound: "));
  }
}

// 300 ms before the first work are more than all that follows.
TEST(LibrarySetupTest, TheHeadlineSaysWhatCameBefore) {
  const Trace trace = draw_library_setup(-1);
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto explanation = run_rules(*facts, {});
  ASSERT_TRUE(explanation);
  EXPECT_NE(explanation->headline.pattern.find("Not counted: {} before that"), std::string::npos);
}

// A new shape in each step, or only in the first two: what comes in each step is no start-up.
TEST(LibrarySetupTest, WhatComesInEachStepIsNoStartUp) {
  const auto verdict = [](int slow_steps) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step();
      for (int i = 0; i < 4; ++i) {
        program.begin_op("aten::scaled_dot_product_attention");
        program.begin_op("aten::_cudnn_attention_forward");
        if (i == 0 && step < slow_steps) program.pass(60'000);
        program.kernel("attention", 5).end().end();
      }
      program.end();
    }
    const auto finding = headline_of(program.trace());
    return finding ? finding->verdict.pattern : std::string();
  };
  EXPECT_NE(verdict(4).find("try out or plan what they run, in each step"), std::string::npos);
  EXPECT_EQ(verdict(2).find("in each step"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain
