#include <gtest/gtest.h>

#include "lanescope/explain/rules/drawn_hardware_test.h"

namespace lanescope::explain {
namespace {

Trace draw_measured_tensor(double tensor, std::int64_t kernel_us = 2000) {
  testing::ProgramSketch program = busy_program(kernel_us);
  return with_hardware(program,
                       {constant("SM active", "%", 95), constant("Tensor active", "%", tensor)});
}

TEST(MeasuredTensorTest, KernelsThatKeepTheTensorCoresBusy) {
  const auto finding = find_by_rule(draw_measured_tensor(80), "measured-tensor");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_DOUBLE_EQ(finding->verdict.values.at(0).real, 1);
  EXPECT_DOUBLE_EQ(finding->verdict.values.at(1).real, 0.8);
  EXPECT_EQ(finding->at_stake_ns, us(2000));
}

TEST(MeasuredTensorTest, IsQuietBelowSixtyPercent) {
  EXPECT_EQ(state_of_rule(draw_measured_tensor(59), "measured-tensor"), RuleRun::State::kQuiet);
}

TEST(MeasuredTensorTest, SaysNothingOnFewSamples) {
  EXPECT_EQ(state_of_rule(draw_measured_tensor(80, 300), "measured-tensor"),
            RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
