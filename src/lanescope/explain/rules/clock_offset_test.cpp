#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::Sketch;

// Ten launches 100 us apart; each kernel begins `after_ns` after its launch began.
Trace shifted(std::int64_t after_ns, int shifted_pairs = 10) {
  Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = 1'000'000 + i * 100'000;
    sketch.runtime("cudaLaunchKernel", at, 4'000, {.correlation = i + 1});
    sketch.kernel("gemm", at + (i < shifted_pairs ? after_ns : 6'000), 10'000,
                  {.correlation = i + 1});
  }
  return sketch.trace();
}

TEST(ClockOffsetTest, SpeaksWhenKernelsBeginBeforeTheirLaunch) {
  const auto finding = find_by_rule(shifted(-30'000), "clock-offset");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kTrust);
  EXPECT_EQ(finding->verdict.values[0].integer, 10);
  EXPECT_EQ(finding->verdict.values[2].integer, 30'000);
  EXPECT_THAT(finding->arithmetic.at(1).values.at(2).text, HasSubstr("about the same"));
}

// The recording takes 0.9 ms: 30 us of it are 3 %, 60 us are 7 %.
TEST(ClockOffsetTest, WarnsOnTheFirstScreenFromATwentiethOfAStep) {
  EXPECT_TRUE(find_by_rule(shifted(-30'000), "clock-offset")->brief.pattern.empty());
  const auto finding = find_by_rule(shifted(-60'000), "clock-offset");
  EXPECT_EQ(finding->brief.values.at(0).integer, 60'000);
}

TEST(ClockOffsetTest, IsQuietAboutRoundingAndAboutTwoOddPairs) {
  EXPECT_FALSE(find_by_rule(shifted(-1'000), "clock-offset"));
  EXPECT_FALSE(find_by_rule(shifted(-30'000, 2), "clock-offset"));
  EXPECT_FALSE(find_by_rule(shifted(2'000), "clock-offset"));  // within the call: normal
}

}  // namespace
}  // namespace lanescope::explain
