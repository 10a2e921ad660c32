#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_cpu_loop_test.h"
#include "lanescope/testing/sampled_slice.h"

namespace lanescope::explain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
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

// The first step is left out. Of the others, 4 x 500 us and 2 x 2500 us, the mean is 1167 us.
TEST(CpuTimeTest, SaysWhatAUsualStepTakesWhereTheMeanDoesNot) {
  const auto said = [](std::initializer_list<std::int64_t> steps_us) {
    const auto finding = find_by_rule(draw_cpu_loop({.steps_us = steps_us}), "cpu-time");
    return finding ? finding->verdict.pattern : std::string();
  };
  EXPECT_THAT(said({500, 500, 500, 500, 500, 2'500, 2'500}),
              HasSubstr("half of the steps take {} or"));
  EXPECT_THAT(said({500, 500, 500, 500, 500, 600}), Not(HasSubstr("half of the steps")));
  EXPECT_THAT(said({500, 500, 1'500}), HasSubstr("The two steps took {} and {}."));
  EXPECT_THAT(said({500, 500, 900}), Not(HasSubstr("The two steps")));
}

// Steps of 200 us, and one of 900 in which an operator runs 8 instead of 1 time.
TEST(CpuTimeTest, SaysWhichOperatorMakesOneOfTwoStepsLong) {
  testing::ProgramSketch program;
  int step = 0;
  program.steps(3, [&](testing::ProgramSketch& p) {
    p.cpu_op("aten::mm", 100);
    for (int i = 0; i < (step == 2 ? 8 : 1); ++i) p.cpu_op("aten::conv3d", 100);
    ++step;
  });
  const Trace trace = program.trace();
  const auto finding = find_by_rule(trace, "cpu-time");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("most of the difference is in {}, {} and {}"));
  const auto& values = finding->verdict.values;
  EXPECT_EQ(values.at(values.size() - 3).text, "aten::conv3d");
  EXPECT_EQ(values.at(values.size() - 2).integer, 1);
  EXPECT_EQ(values.at(values.size() - 1).integer, 8);
}

// A sample every 10 us in four steps of 1 ms, of which the last three are steady: 300 samples.
TEST(CpuTimeTest, NamesThePythonFunctionOfTheSamples) {
  testing::Sketch sketch;
  for (int step = 0; step < 4; ++step)
    sketch.annotation("ProfilerStep#" + std::to_string(step), step * 1'000 * kUs, 1'000 * kUs)
        .op("aten::mm", (step * 1'000 + 10) * kUs, 100 * kUs);
  testing::add_sampled_slice(sketch.builder(), {.function = "train.py(17): augment",
                                                .dur_ns = 4'000 * kUs,
                                                .samples = 400,
                                                .self = 400,
                                                .counts = {{"Collecting garbage samples", 80}},
                                                .lines = R"({"20": 400})"});
  sketch.builder().add_metadata("lanescope_python_lock", "{}");
  const Trace trace = sketch.trace();
  const auto finding = find_by_rule(trace, "cpu-time");
  ASSERT_TRUE(finding);
  const Sentence& line = finding->arithmetic.at(1);
  EXPECT_THAT(line.pattern,
              HasSubstr("samples of this thread's Python stack in these steps: about"));
  EXPECT_EQ(line.values.at(1).integer, 300);
  EXPECT_EQ(line.values.at(2).integer, 300);
  EXPECT_EQ(line.values.at(3).text, "train.py(17): augment");
  EXPECT_EQ(line.values.at(4).integer, 20);
  EXPECT_THAT(finding->try_next.at(0), HasSubstr("lanescope flame"));
  // The thread that runs the steps counts where nothing is launched: 60 of 300 samples.
  const auto garbage = find_by_rule(trace, "garbage-collection");
  ASSERT_TRUE(garbage);
  EXPECT_NEAR(garbage->verdict.values.at(0).real, 0.2, 0.001);
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
