#include <gtest/gtest.h>

#include "lanescope/explain/rules/drawn_hardware_test.h"

namespace lanescope::explain {
namespace {

// Four steps, each with two kernels of 100 us that are 3 ms apart.
Trace draw_shared_gpu(double active) {
  testing::ProgramSketch program = loop(4, 2, {.us = 100}, 3000);
  return with_hardware(program, {constant("SM active", "%", active)});
}

TEST(SharedGpuTest, SmsWorkWhileTheProgramHasNothingOnTheGpu) {
  const auto finding = find_by_rule(draw_shared_gpu(40), "shared-gpu");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kTrust);
  EXPECT_EQ(finding->verdict.values.at(0).integer, finding->verdict.values.at(1).integer);
  EXPECT_DOUBLE_EQ(finding->verdict.values.at(2).real, 0.4);
}

TEST(SharedGpuTest, IsQuietAboutAnIdleGpu) {
  EXPECT_EQ(state_of_rule(draw_shared_gpu(9), "shared-gpu"), RuleRun::State::kQuiet);
}

// Of a GPU that always works for this program the counters cannot tell whose work it is.
TEST(SharedGpuTest, SaysNothingOfABusyGpu) {
  testing::ProgramSketch program = busy_program(4000);
  EXPECT_EQ(state_of_rule(with_hardware(program, {constant("SM active", "%", 90)}), "shared-gpu"),
            RuleRun::State::kNotChecked);
}

// Work of the program itself that was not recorded would look the same.
TEST(SharedGpuTest, SaysNothingWhenWorkWasLost) {
  testing::ProgramSketch program = loop(4, 2, {.us = 100}, 3000);
  program.sketch().builder().stats().count(ImportIssue::kDroppedRecords, {}, 1);
  EXPECT_EQ(state_of_rule(with_hardware(program, {constant("SM active", "%", 40)}), "shared-gpu"),
            RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
