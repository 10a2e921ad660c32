#include "lanescope/report/thinning_text.h"

#include <gtest/gtest.h>

namespace lanescope::report {
namespace {

TEST(ThinningTextTest, SaysWhatIsMissingAndWhatThatMeans) {
  analysis::Thinning thinning;
  thinning.without_inputs_ns = 2'000'000'000;
  EXPECT_EQ(thinning_text(thinning), "no input shapes for 2.000s");
  thinning.operators_in_parts_ns = 1'000'000'000;
  thinning.paused_ns = 500'000'000;
  EXPECT_EQ(thinning_text(thinning),
            "no input shapes for 2.000s, no operators for 500.000ms of 1.000s: counts and sums of "
            "operators are lower bounds, and time without operators may be such a pause");
  thinning.ranges_paused_ns = 400'000'000;
  EXPECT_EQ(thinning_text(thinning),
            "no input shapes for 2.000s, no operators for 500.000ms of 1.000s, no ranges of the "
            "program except steps for 400.000ms of that: counts and sums of operators and ranges "
            "are lower bounds, and time without operators may be such a pause");
}

TEST(ThinningTextTest, SaysHowLongAllocationsWereRecorded) {
  EXPECT_EQ(thinning_text({.memory_end_ns = 900, .with_memory_ns = 412'000'000}),
            "no allocations after the first 412.000ms");
  EXPECT_EQ(thinning_text({.memory_end_ns = -5}), "no allocations");
}

TEST(ThinningTextTest, SaysTheCostAndWhatABudgetCannotLimit) {
  EXPECT_EQ(recording_cost_text({.budget_ratio = 0.01, .share_ratio = 0.0087}),
            "recording took 0.87 % of the time; its budget was 1 %");
  EXPECT_EQ(recording_cost_text(
                {.budget_ratio = 0.001, .share_ratio = 0.014, .always_recorded_ratio = 0.0137}),
            "recording took 1.4 % of the time; its budget was 0.1 %; calls of the GPU's API, "
            "which a budget never leaves out, took 1.4 %");
}

}  // namespace
}  // namespace lanescope::report
