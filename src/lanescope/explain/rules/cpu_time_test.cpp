#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_cpu_loop_test.h"

namespace lanescope::explain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Sketch;

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

}  // namespace
}  // namespace lanescope::explain
