// Recordings of which only some time counts: the last seconds before the end of a flight recorder,
// and the longest part with the GPU of a recording with a budget.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "lanescope/codec/record_options.h"
#include "lanescope/format/spool/spool_reading_test.h"
#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format {
namespace {

using lanescope::testing::SpoolSketch;

// 50,000 ticks are 100,000 ns: of the window from tick 10,000 to 110,000 what is after 60,000.
constexpr std::uint64_t kLastNs = 100'000;

std::optional<std::int64_t> began_before(const Trace& trace, SliceId id) {
  const ArgsView args = trace.slice_args(id);
  for (std::size_t i = 0; i < args.size(); ++i)
    if (trace.text(args.field(i).key) == "Began before (ns)") return args.integer(&args.field(i));
  return std::nullopt;
}

TEST(ReadRingTest, OfARingTheLastSecondsCount) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 110'000, 0, 1, kLastNs);
  const spool::InstantRecord instant{.begin_tsc = 59'999, .name = sketch.text("early instant")};
  sketch.records(
      0, 3,
      {sketch.range("open", 20'000, 0), sketch.range("gone", 50'000, 59'999),
       sketch.range("across", 58'000, 62'000), instant, sketch.range("whole", 70'000, 80'000)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(find_slice(trace, "gone"), kNone<SliceId>);
  EXPECT_EQ(trace.instants().size(), 2u);  // the two marks of the window
  EXPECT_EQ(trace.window_end_ns() - trace.window_start_ns(), 100'000);
  const SliceId across = find_slice(trace, "across"), open = find_slice(trace, "open"),
                whole = find_slice(trace, "whole");
  EXPECT_EQ(trace.start_ns(across), trace.window_start_ns());
  EXPECT_EQ(trace.dur_ns(across), 4'000);
  EXPECT_EQ(began_before(trace, across), 4'000);
  EXPECT_EQ(trace.dur_ns(open), 100'000);
  EXPECT_EQ(began_before(trace, open), 80'000);
  EXPECT_EQ(trace.start_ns(whole) - trace.window_start_ns(), 20'000);
  EXPECT_EQ(trace.dur_ns(whole), 20'000);
  EXPECT_EQ(began_before(trace, whole), std::nullopt);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kEarlyRange].count, 2u);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kOpenRange].count, 1u);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kLostBegin].count, 0u);
}

// Windows of one cycle: the CPU alone, then two parts with the GPU, then the CPU in another cycle.
TEST(ReadGpuPartsTest, OfPartsWithTheGpuTheLongestCounts) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 50'000)
      .window(50'001, 60'000, 0, 1, 0, LANESCOPE_RECORD_GPU_PART)
      .window(90'000, 120'000, 0, 1, 0, LANESCOPE_RECORD_GPU_PART);
  sketch.records(0, 1,
                 {sketch.range("before", 20'000, 30'000), sketch.range("across", 40'000, 55'000),
                  sketch.range("first part", 51'000, 52'000), sketch.range("open", 58'000, 95'000),
                  sketch.range("second part", 91'000, 92'000)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(trace.window_end_ns() - trace.window_start_ns(), 60'000);  // 30,000 ticks of 2 ns
  for (const char* name : {"before", "across", "first part", "open"})
    EXPECT_EQ(find_slice(trace, name), kNone<SliceId>) << name;
  EXPECT_EQ(trace.start_ns(find_slice(trace, "second part")) - trace.window_start_ns(), 2'000);
}

TEST(ReadGpuPartsTest, WithoutAPartTheWindowOfTheCpuCounts) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 50'000, 0)
      .window(60'000, 70'000, 1)
      .window(70'001, 71'000, 1, 1, 0, LANESCOPE_RECORD_GPU_PART);
  sketch.records(0, 1,
                 {sketch.range("cycle 0", 20'000, 30'000), sketch.range("cycle 1", 61'000, 62'000),
                  sketch.range("part of cycle 1", 70'100, 70'200)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_NE(find_slice(trace, "cycle 0"), kNone<SliceId>);
  EXPECT_EQ(find_slice(trace, "cycle 1"), kNone<SliceId>);
  EXPECT_NE(find_slice(trace, "part of cycle 1"), kNone<SliceId>);
}

// The process was killed in it: the newest time is the anchor at tick 501,000.
TEST(ReadGpuPartsTest, APartThatNeverEndedLastsToTheNewestTime) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 90'000, 0, 1, 0, LANESCOPE_RECORD_GPU_PART)
      .window(401'000, 0, 0, 1, 0, LANESCOPE_RECORD_GPU_PART);
  sketch.records(0, 1, {sketch.range("in the first", 20'000, 30'000)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(find_slice(trace, "in the first"), kNone<SliceId>);
  EXPECT_EQ(trace.window_end_ns() - trace.window_start_ns(), 200'000);
}

TEST(ReadRingTest, AKilledRingCountsFromItsNewestTime) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 0, 0, 1, kLastNs);  // the newest time is the anchor at tick 501,000
  sketch.records(0, 1,
                 {sketch.range("gone", 440'000, 450'999), sketch.range("kept", 450'000, 451'001)},
                 false);
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(find_slice(trace, "gone"), kNone<SliceId>);
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "kept")), 2);
}

TEST(ReadRingTest, ARingThatLostSomethingBeginsAfterTheGap) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 110'000, 0, 1, kLastNs);
  sketch.lost_until(90'000);
  sketch.records(0, 9,
                 {sketch.range("before", 70'000, 80'000), sketch.range("after", 95'000, 96'000)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(trace.window_end_ns() - trace.window_start_ns(), 40'000);
  EXPECT_EQ(find_slice(trace, "before"), kNone<SliceId>);
  EXPECT_NE(find_slice(trace, "after"), kNone<SliceId>);
}

TEST(ReadRingTest, RangesOfChunksThatWereGivenBack) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 110'000, 0, 1, kLastNs);
  const auto end_at = [](std::uint32_t sequence, std::uint32_t slot, std::uint64_t tick) {
    return spool::RangeEndRecord{.end_tsc = tick, .place = {slot, sequence}};
  };
  sketch.kept(0, 1, 7, sketch.range("kept", 30'000, 0));
  sketch.kept(0, 5, 0, sketch.range("twice", 65'000, 0));  // its chunk is there as well
  // The ends: of "kept", of a range that nobody kept, and of one that nobody kept
  // before the window.
  sketch.records(0, 5,
                 {sketch.range("twice", 65'000, 70'000), end_at(1, 7, 75'000), end_at(2, 0, 76'000),
                  end_at(2, 1, 59'000)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "kept")), 30'000);
  EXPECT_EQ(began_before(trace, find_slice(trace, "kept")), 60'000);
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "twice")), 10'000);
  EXPECT_EQ(trace.slices().size(), 3u);  // and the window's
  EXPECT_EQ(trace.import_stats()[ImportIssue::kLostBegin].count, 1u);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kOpenRange].count, 0u);
}

TEST(ReadRingTest, OnlyTheRingOfASessionIsCut) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 110'000, 0, 1, kLastNs).window(20'000, 40'000, 0, 2);
  sketch.records(
      0, 1,
      {sketch.range("in both", 25'000, 26'000), sketch.range("in the ring", 100'000, 100'001)});
  ReadSpoolOptions ring, inner;
  ring.session = 1;
  inner.session = 2;
  EXPECT_EQ(find_slice(read_recording(sketch.bytes(), ring), "in both"), kNone<SliceId>);
  EXPECT_NE(find_slice(read_recording(sketch.bytes(), ring), "in the ring"), kNone<SliceId>);
  EXPECT_NE(find_slice(read_recording(sketch.bytes(), inner), "in both"), kNone<SliceId>);
  EXPECT_EQ(find_slice(read_recording(sketch.bytes(), inner), "in the ring"), kNone<SliceId>);
}

TEST(ReadRingTest, ALengthOfARingThatMakesNoSenseIsDamage) {
  for (const std::uint64_t last : {~std::uint64_t{0}, std::uint64_t{1} << 62}) {
    SpoolSketch sketch;
    sketch.thread(1, 1);
    sketch.window(10'000, 110'000, 0, 1, last);
    sketch.records(0, 1, {sketch.range("there", 25'000, 26'000)});
    EXPECT_NE(find_slice(read_recording(sketch.bytes()), "there"), kNone<SliceId>);
  }
}

}  // namespace
}  // namespace lanescope::format
