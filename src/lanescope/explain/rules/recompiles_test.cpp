#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_compiled_test.h"

namespace lanescope::explain {
namespace {

// 3 ms in one of three steady steps; the launch before it still runs for 9 us of them.
TEST(RecompilesTest, SpeaksOfCompilingInASteadyStep) {
  const auto finding = find_by_rule(compiling_in(3).trace(), "recompiles");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
  EXPECT_EQ(finding->verdict.values[2].integer, 1'000'000);
  EXPECT_EQ(finding->at_stake_ns, 997'000);
  EXPECT_EQ(finding->evidence[0].text.values[0].text, "2/1");
  EXPECT_FALSE(find_by_rule(compiling_in(3).trace(), "cold-compile"));
}

// The third of six steps is left out as a long one. No other step compiles, so there is no cost per step.
TEST(RecompilesTest, InTheLongStepOnlyAreReportedOnce) {
  const auto finding = find_by_rule(compiling_in(3, 6).trace(), "recompiles");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
  EXPECT_EQ(finding->at_stake_ns, us(2'991));
  EXPECT_EQ(finding->brief.values.at(0).integer, 3);
  EXPECT_EQ(finding->brief.values.at(1).integer, us(3'000));
}

TEST(RecompilesTest, AreQuietWithoutCompiling) {
  EXPECT_FALSE(find_by_rule(compiling_in(0).trace(), "recompiles"));
  EXPECT_FALSE(find_by_rule(compiling_in(0).trace(), "cold-compile"));
}

// Without marked steps: versions 1, 2 and 3 of function 0 take 3 ms each; its version 0 is no recompilation.
TEST(RecompilesTest, CountNewVersionsWithoutMarkedSteps) {
  const auto with = [](int versions) {
    testing::ProgramSketch program;
    for (int i = 0; i <= versions; ++i) {
      program.begin("_compile.compile_inner (dynamo_timed)").pass(1000);
      program.begin("dynamo_data: compile_id=0/" + std::to_string(i)).pass(1).end();
      program.pass(1999).end().cpu_op("aten::mm", 500);
    }
    return find_by_rule(program.trace(), "recompiles");
  };
  const auto finding = with(3);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);
  EXPECT_EQ(finding->at_stake_ns, us(9'000));
  EXPECT_EQ(finding->brief.values[0].integer, 3);
  EXPECT_FALSE(with(2));
}

}  // namespace
}  // namespace lanescope::explain
