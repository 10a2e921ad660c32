#include "lanescope/analysis/time_span.h"

#include <gtest/gtest.h>

#include "lanescope/model/time_limits.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

TEST(TimeSpanTest, AnythingUpTo104DaysIsOneRecording) {
  EXPECT_FALSE(find_far_times(testing::Sketch().trace()));
  testing::Sketch sketch;
  sketch.op("first", -10, 5).op("last", kLongestSpanNs - 20, 10);  // ends at 2^53 - 10
  EXPECT_FALSE(find_far_times(sketch.trace()));
}

TEST(TimeSpanTest, FurtherApartTheTwoEndsAreNamed) {
  testing::Sketch sketch;
  sketch.op("middle", 5, 100).op("first", -10, 5).op("last", kLongestSpanNs - 20, 11);
  const Trace trace = sketch.trace();
  const auto far = find_far_times(trace);
  ASSERT_TRUE(far);
  EXPECT_EQ(trace.name(far->first), "first");
  EXPECT_EQ(trace.name(far->last), "last");
  EXPECT_EQ(far->span_ns, static_cast<std::uint64_t>(kLongestSpanNs) + 1);
}

TEST(TimeSpanTest, TheWidestTimesFit) {
  testing::Sketch sketch;
  sketch.op("first", -kMaxTimeNs, 1).op("last", kMaxTimeNs, 0);
  const auto far = find_far_times(sketch.trace());
  ASSERT_TRUE(far);
  EXPECT_EQ(far->span_ns, 2 * static_cast<std::uint64_t>(kMaxTimeNs));
}

}  // namespace
}  // namespace lanescope::analysis
