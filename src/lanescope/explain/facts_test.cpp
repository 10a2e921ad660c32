// What is gathered about a trace before any rule runs, and when it cannot be.
#include "lanescope/explain/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

constexpr std::int64_t kDayNs = 86'400'000'000'000;

Trace kernels_apart_ns(std::int64_t apart_ns) {
  Sketch sketch;
  sketch.kernel("gemm", 0, 1000);
  sketch.kernel("gemm", apart_ns, 1000);
  return sketch.trace();
}

TEST(FactsTest, TimesWithin104DaysAreOneRecording) {
  EXPECT_TRUE(gather_facts(kernels_apart_ns(100 * kDayNs), {}).has_value());
}

// 731 days are 2.0 years of 365.25 days.
TEST(FactsTest, TimesFurtherApartAreAnErrorThatNamesTheEvents) {
  const auto facts = gather_facts(kernels_apart_ns(731 * kDayNs), {});
  ASSERT_FALSE(facts.has_value());
  EXPECT_EQ(facts.error().code, Errc::kCorruptInput);
  EXPECT_THAT(facts.error().message,
              ::testing::StartsWith(
                  "expected times within 104 days, found 2.0 years from event 1 to event 2"));
}

}  // namespace
}  // namespace lanescope::explain
