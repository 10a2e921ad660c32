#include "lanescope/format/spool/tick_map.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace lanescope::format {
namespace {

TEST(TickMapTest, EveryAnchorIsMetAndTimeNeverRunsBackwards) {
  // The rate changes from 2 to 3 ns a tick at the second anchor.
  const TickMap map(
      {{100, 1000, 50'000}, {2'000'100, 4'001'000, 4'050'000}, {4'000'100, 10'001'000, 10'050'000}},
      1);
  EXPECT_EQ(map.unix_ns(100), 50'000);
  EXPECT_EQ(map.unix_ns(1'000'100), 2'050'000);
  EXPECT_EQ(map.unix_ns(2'000'100), 4'050'000);
  EXPECT_EQ(map.unix_ns(3'000'100), 7'050'000);
  EXPECT_EQ(map.unix_ns(4'000'100), 10'050'000);
  EXPECT_EQ(map.unix_ns(4'000'102),
            10'050'005);  // outside: 10 ms in 4,000,000 ticks, 2.5 ns a tick
  EXPECT_EQ(map.unix_ns(98), 49'995);
  std::int64_t last = *map.unix_ns(0);
  for (std::uint64_t tick = 1; tick < 6'000'000; tick += 997) {
    EXPECT_GE(*map.unix_ns(tick), last);
    last = *map.unix_ns(tick);
  }
}

TEST(TickMapTest, TheOtherWayIsTheFirstTickThatIsNotBefore) {
  const TickMap map({{1000, 5000, 105'000}, {2000, 7000, 107'000}}, 500'000'000);  // 2 ns a tick
  EXPECT_EQ(map.ticks_at(106'000), 1500u);
  EXPECT_EQ(map.ticks_at(105'999), 1500u);
  EXPECT_EQ(map.ticks_at(104'000), 500u);
  EXPECT_EQ(map.ticks_at(0), 0u);
  EXPECT_EQ(map.ticks_at(109'000), 3000u);
}

TEST(TickMapTest, WithoutTwoGoodAnchorsTheRoughRateServes) {
  EXPECT_EQ(TickMap({{100, 1000, 1000}}, 500'000'000).unix_ns(200), 1200);
  EXPECT_EQ(TickMap({}, 500'000'000).unix_ns(200), 400);
  EXPECT_EQ(TickMap({}, 0).unix_ns(200), 200);
  EXPECT_FALSE(TickMap({{100, 1000, 1000}}, 1).unix_ns(~std::uint64_t{0}));
}

}  // namespace
}  // namespace lanescope::format
