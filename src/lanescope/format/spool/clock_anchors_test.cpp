#include "lanescope/format/spool/clock_anchors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace lanescope::format {
namespace {

using ::testing::HasSubstr;

// A tick is 2 ns. The real clock was set one second ahead between the two anchors, which moves no
// event: the trace's clock is the monotonic one, moved by the first difference, 49'000.
TEST(ClockAnchorsTest, SayWhatTheTraceAndBothClocksCallOneMoment) {
  const TickMap map({{100, 1000, 50'000, 20}, {1'000'100, 2'001'000, 1'002'050'000, 30}},
                    500'000'000);
  EXPECT_EQ(
      clock_anchors_json(map, 500'000'000),
      R"([{"trace_unix_ns": 50000, "monotonic_ns": 1000, "realtime_ns": 50000, "width_ns": 40}, )"
      R"({"trace_unix_ns": 2050000, "monotonic_ns": 2001000, "realtime_ns": 1002050000, )"
      R"("width_ns": 60}])");
  EXPECT_EQ(clock_anchors_json(TickMap({}, 1), 1), "");
}

TEST(ClockAnchorsTest, OfManyTheFirstTheLastAndSomeBetweenAreKept) {
  std::vector<TickAnchor> anchors;
  for (std::int64_t i = 0; i < 1000; ++i)
    anchors.push_back({static_cast<std::uint64_t>(i), i * 1000 + 1, i * 1000 + 7, 0});
  const std::string json = clock_anchors_json(TickMap(anchors, 0), 0);
  EXPECT_EQ(std::count(json.begin(), json.end(), '{'), 64);
  EXPECT_THAT(json, HasSubstr(R"([{"trace_unix_ns": 7, "monotonic_ns": 1,)"));
  EXPECT_THAT(json, HasSubstr(R"("monotonic_ns": 999001, "realtime_ns": 999007, "width_ns": 0}])"));
}

}  // namespace
}  // namespace lanescope::format
