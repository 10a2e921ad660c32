// Rules that also speak about recordings without GPU work, on drawn ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Sketch;

constexpr std::int64_t kUs = 1'000;

// Steps of so many us each. In each 100 us of forward, 200 of backward (195 of them a matmul), 50
// of the optimizer, so many of waiting for a batch, and nothing that is recorded else.
struct CpuLoop {
  std::vector<std::int64_t> steps_us = {1'000, 1'000, 1'000, 1'000};
  std::int64_t batch_us = 30;
};
Trace draw_cpu_loop(const CpuLoop& loop) {
  Sketch sketch;
  std::int64_t at = 0;
  int number = 0;
  for (const std::int64_t length : loop.steps_us) {
    sketch.annotation("ProfilerStep#" + std::to_string(number++), at * kUs, length * kUs);
    sketch.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", (at + 1) * kUs,
                      loop.batch_us * kUs);
    const std::int64_t forward = at + 2 + loop.batch_us;
    sketch.op("aten::linear", forward * kUs, 100 * kUs)
        .op("aten::addmm", (forward + 10) * kUs, 80 * kUs);
    sketch
        .op("autograd::engine::evaluate_function: AddmmBackward0", (forward + 101) * kUs, 200 * kUs)
        .op("aten::mm", (forward + 103) * kUs, 195 * kUs);
    sketch.annotation("Optimizer.step#SGD.step", (forward + 302) * kUs, 50 * kUs);
    at += length;
  }
  return sketch.trace();
}

TEST(CpuTimeTest, NamesTheLargestPartAndTheOperator) {
  const auto finding =
      find_by_rule(draw_cpu_loop({.steps_us = {500, 500, 500}, .batch_us = 30}), "cpu-time");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->at_stake_ns, 0);
  const auto& values = finding->verdict.values;
  EXPECT_EQ(values.at(0).integer, 500 * kUs);
  EXPECT_DOUBLE_EQ(values.at(1).real, 0.4);
  EXPECT_EQ(values.at(2).text, "the backward pass");
  EXPECT_EQ(values.at(3).text, "aten::mm");  // 195 us of its own; aten::addmm has 80
  EXPECT_DOUBLE_EQ(values.at(4).real, 0.39);
  const Sentence& sum = finding->arithmetic.at(0);
  std::vector<std::int64_t> parts;
  for (const Value& value : sum.values) parts.push_back(value.integer / kUs);
  EXPECT_THAT(parts, ElementsAre(30, 200, 50, 100, 120, 500));
}

TEST(CpuTimeTest, IsQuietWhereAGpuWorksAndSaysWhatItNeeds) {
  EXPECT_EQ(state_of_rule(loop(3, 4, {.us = 50}).trace(), "cpu-time"), RuleRun::State::kQuiet);
  Sketch nothing;
  nothing.runtime("cudaGetDeviceCount", 0, 5);
  EXPECT_EQ(state_of_rule(nothing.trace(), "cpu-time"), RuleRun::State::kNotChecked);
}

TEST(CpuTimeTest, IsTheHeadline) {
  const Trace trace = draw_cpu_loop({});
  const auto facts = gather_facts(trace);
  const auto explanation = run_rules(*facts, {});
  EXPECT_THAT(explanation->headline.pattern,
              HasSubstr("The trace holds no GPU work. On the CPU a step takes {}"));
}

TEST(DataLoaderWaitOnCpuTest, SpeaksFromATwentiethOfTheStepsOn) {
  const auto finding = find_by_rule(
      draw_cpu_loop({.steps_us = {1'000, 1'000, 1'000}, .batch_us = 400}), "dataloader-wait");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 400 * kUs);
  EXPECT_DOUBLE_EQ(finding->at_stake_ratio, 0.4);
  EXPECT_FALSE(find_by_rule(draw_cpu_loop({.batch_us = 49}), "dataloader-wait"));
  EXPECT_TRUE(find_by_rule(draw_cpu_loop({.batch_us = 50}), "dataloader-wait"));
}

TEST(StepLengthsOnCpuTest, TheFirstTheLongAndTheUnevenStepAreSeen) {
  const auto first =
      find_by_rule(draw_cpu_loop({.steps_us = {3'000, 1'000, 1'000, 1'000}}), "slow-first-step");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->at_stake_ns, 2'000 * kUs);
  EXPECT_FALSE(find_by_rule(draw_cpu_loop({}), "slow-first-step"));

  const auto of_one = find_by_rule(
      draw_cpu_loop({.steps_us = {1'000, 1'000, 1'000, 9'000, 1'000, 1'000}}), "long-step");
  ASSERT_TRUE(of_one);
  EXPECT_EQ(of_one->at_stake_ns, 8'000 * kUs);

  const auto uneven =
      find_by_rule(draw_cpu_loop({.steps_us = {1'000, 1'000, 2'000, 1'000, 2'000, 1'000, 2'000}}),
                   "uneven-steps");
  ASSERT_TRUE(uneven);
  EXPECT_EQ(uneven->at_stake_ns, 500 * kUs);  // 3 of 6 take 1 ms more
}

}  // namespace
}  // namespace lanescope::explain
