#include <gtest/gtest.h>

#include "lanescope/explain/rules/drawn_hardware_test.h"

namespace lanescope::explain {
namespace {

Trace draw_measured_memory(double read, double write, std::int64_t kernel_us = 2000,
                           const char* peak = kPeak) {
  testing::ProgramSketch program = busy_program(kernel_us);
  return with_hardware(program,
                       {constant("SM active", "%", 90), constant("DRAM read", "GB/s", read),
                        constant("DRAM write", "GB/s", write)},
                       peak);
}

// 2000 + 1000 of 4000 GB/s: 75 %.
TEST(MeasuredMemoryTest, KernelsNearTheMemorysPeak) {
  const auto finding = find_by_rule(draw_measured_memory(2000, 1000), "measured-memory");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_DOUBLE_EQ(finding->verdict.values.at(0).real, 1);
  EXPECT_DOUBLE_EQ(finding->verdict.values.at(1).real, 0.75);
  EXPECT_EQ(finding->at_stake_ns, us(2000));
  EXPECT_GE(finding->sample_count, 20u);
  EXPECT_EQ(finding->evidence.size(), 1u);
}

TEST(MeasuredMemoryTest, IsQuietBelowSixtyPercent) {
  EXPECT_EQ(state_of_rule(draw_measured_memory(1400, 900), "measured-memory"),
            RuleRun::State::kQuiet);  // 57.5 %
}

TEST(MeasuredMemoryTest, SaysNothingOnFewSamplesOrWithoutThem) {
  // Four kernels of 300 us: 2 or 3 samples in each.
  EXPECT_EQ(state_of_rule(draw_measured_memory(2000, 1000, 300), "measured-memory"),
            RuleRun::State::kNotChecked);
  EXPECT_EQ(state_of_rule(busy_program(2000).trace(), "measured-memory"),
            RuleRun::State::kNotChecked);
  // The peak is not known.
  EXPECT_FALSE(find_by_rule(draw_measured_memory(2000, 1000, 2000, ""), "measured-memory"));
}

}  // namespace
}  // namespace lanescope::explain
