#include "lanescope/analysis/busy_periods.h"

#include <gtest/gtest.h>

#include <random>

#include "lanescope/analysis/interval_union.h"

namespace lanescope::analysis {
namespace {

TEST(BusyPeriodsTest, WhatBlocksBothCoverCountsOnce) {
  BusyPeriods first, second;
  first.add(0, 10);
  first.add(20, 40);
  second.add(30, 35);  // in the last period of the first block
  second.add(38, 50);
  second.add(60, 70);
  BusyTrack track;
  track.add(first);
  track.add(second);
  first.finish();
  second.finish();
  EXPECT_EQ(track.length_ns(), 10 + 30 + 10);  // [0, 10), [20, 50), [60, 70)
  BusyPlace place;
  EXPECT_EQ(track.within_ns(5, 45, place), 5 + 25);
  EXPECT_EQ(track.within_ns(-10, 5, place), 5);
  EXPECT_EQ(track.within_ns(65, 1000, place), 5);
  EXPECT_EQ(track.within_ns(50, 60, place), 0);
}

// Periods of two streams of a device in blocks of five, and the same in one list.
TEST(BusyPeriodsTest, BlocksOfSeveralTracksAreAsOneList) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t limit) {
      return static_cast<std::int64_t>(random() % limit);
    };
    IntervalUnion all;
    std::vector<std::vector<BusyPeriods>> blocks(3, std::vector<BusyPeriods>(8));
    std::vector<BusyTrack> tracks(3);
    for (std::size_t t = 0; t < tracks.size(); ++t) {
      IntervalUnion of_track;
      std::int64_t at = below(300) - 100;
      for (BusyPeriods& block : blocks[t]) {
        for (int i = 0; i < 5; ++i) {
          at += below(30);
          const std::int64_t end = at + below(50);
          block.add(at, end);
          of_track.add(at, end);
          all.add(at, end);
        }
      }
      for (BusyPeriods& block : blocks[t]) tracks[t].add(block);
      for (BusyPeriods& block : blocks[t]) block.finish();
      of_track.finish();
      ASSERT_EQ(tracks[t].length_ns(), of_track.length_ns());
      BusyPlace place;
      for (int i = 0; i < 50; ++i) {
        const std::int64_t start = below(900) - 150, end = start + below(400);
        ASSERT_EQ(tracks[t].within_ns(start, end, place), of_track.length_within_ns(start, end));
      }
    }
    all.finish();
    const std::vector<const BusyTrack*> device = {&tracks[0], &tracks[1], &tracks[2]};
    for (const unsigned threads : {1u, 3u})
      ASSERT_EQ(busy_length_ns(device, threads), all.length_ns()) << "seed " << seed;
  }
}

TEST(BusyPeriodsTest, ATrackWithoutWorkIsNeverBusy) {
  BusyPeriods none;
  BusyTrack track;
  track.add(none);
  BusyPlace place;
  EXPECT_EQ(track.within_ns(0, 100, place), 0);
  const BusyTrack* const tracks[] = {&track, &track};
  EXPECT_EQ(busy_length_ns(tracks, 2), 0);
}

}  // namespace
}  // namespace lanescope::analysis
