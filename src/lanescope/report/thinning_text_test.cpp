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

}  // namespace
}  // namespace lanescope::report
