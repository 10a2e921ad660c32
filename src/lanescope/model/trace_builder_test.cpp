#include "lanescope/model/trace_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lanescope {
namespace {

Scalar number(std::int64_t value) { return {false, value, kNone<StringId>}; }

struct Builder : TraceBuilder {
  TrackId cpu = thread_track(number(1), number(1));
  CategoryId op = category("cpu_op");
  StringId name(std::string_view text) { return intern(text); }
  Trace done() { return std::move(*std::move(*this).finish()); }
};

TEST(TraceBuilderTest, SlicesAreSortedByTrackStartAndLength) {
  Builder b;
  const TrackId gpu = b.stream_track(number(0), number(7));
  b.add_slice(gpu, b.category("kernel"), b.name("k"), 5, 5, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("late"), 20, 5, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("inner"), 10, 2, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("outer"), 10, 9, kNone<ArgsId>);
  const Trace trace = b.done();
  ASSERT_EQ(trace.slices().size(), 4u);
  EXPECT_EQ(trace.name(SliceId{0}), "outer");
  EXPECT_EQ(trace.name(SliceId{1}), "inner");
  EXPECT_EQ(trace.name(SliceId{2}), "late");
  EXPECT_EQ(trace.name(SliceId{3}), "k");
  EXPECT_EQ(trace.slices().event_index[0], 3u);
  EXPECT_EQ(trace.track(SliceId{3}).device, 0);
  EXPECT_EQ(trace.track(SliceId{3}).stream, 7);
}

TEST(TraceBuilderTest, OverlappingSlicesOfOneTrackAreAllKept) {
  Builder b;
  b.add_slice(b.cpu, b.op, b.name("a"), 0, 10, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("b"), 5, 10, kNone<ArgsId>);
  EXPECT_EQ(b.done().slices().size(), 2u);
}
TEST(TraceBuilderTest, TheLastOfEqualTopLevelKeysCounts) {
  TraceBuilder builder;
  builder.add_metadata("host_name", "\"first\"");
  builder.add_metadata("other", "1");
  builder.add_metadata("host_name", "\"last\"");
  const auto trace = std::move(builder).finish();
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->metadata_json("host_name"), "\"last\"");
  EXPECT_EQ(trace->metadata_json("none"), std::nullopt);
}
TEST(TraceBuilderTest, StepsKeepTheirSlicesWhenTheSlicesAreSorted) {
  Builder b;
  b.add_slice(b.cpu, b.op, b.name("late"), 50, 10, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("early"), 10, 10, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("inside late"), 50, 5, kNone<ArgsId>);
  b.add_step(7,
             2);  // the importer says what a step is; its name does not matter
  b.add_step(3, 0);
  b.add_step(2, 1);
  const Trace trace = b.done();
  ASSERT_EQ(trace.steps().size(), 3u);
  EXPECT_EQ(trace.steps()[0].number, 2);
  EXPECT_EQ(trace.name(trace.steps()[0].slice), "early");
  EXPECT_EQ(trace.steps()[1].number, 3);
  EXPECT_EQ(trace.name(trace.steps()[1].slice), "late");
  EXPECT_EQ(trace.steps()[2].number, 7);
  EXPECT_EQ(trace.name(trace.steps()[2].slice), "inside late");
}

TEST(TraceBuilderTest, AnyNumberOfThreadsSortsAlike) {
  const auto sorted_by = [](unsigned threads) {
    TraceBuilder builder;
    std::mt19937 random(3);
    const CategoryId op = builder.category("cpu_op");
    for (int i = 0; i < 200000; ++i) {
      const TrackId track = builder.thread_track(number(1), number(random() % 5));
      const auto name = builder.intern(std::to_string(random() % 9));
      builder.add_slice(track, op, name, i * 10 + random() % 500, random() % 100, kNone<ArgsId>);
      if (i % 1000 == 0) builder.add_step(i / 1000, static_cast<std::uint32_t>(i));
    }
    return std::move(*std::move(builder).finish(threads));
  };
  const Trace alone = sorted_by(1), shared = sorted_by(6);
  const SliceColumns &a = alone.slices(), &b = shared.slices();
  EXPECT_TRUE(std::is_sorted(a.track.low.begin(), a.track.low.end()));
  for (std::size_t i = 1; i < a.size(); ++i)
    ASSERT_TRUE(a.track[i - 1] != a.track[i] || a.start_ns[i - 1] <= a.start_ns[i]) << i;
  EXPECT_TRUE(a.start_ns == b.start_ns && a.dur_ns.short_ns == b.dur_ns.short_ns &&
              a.name == b.name && a.track.low == b.track.low && a.category == b.category &&
              a.args == b.args && a.event_index == b.event_index);
  ASSERT_EQ(alone.steps().size(), 200u);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(alone.steps()[i].slice, shared.steps()[i].slice);
  EXPECT_EQ(alone.import_stats()[ImportIssue::kOutOfOrder].count,
            shared.import_stats()[ImportIssue::kOutOfOrder].count);
}

// 2^31 ns is the first duration that needs eight bytes.
TEST(TraceBuilderTest, DurationsOfAnyLengthAreKept) {
  constexpr std::int64_t kDurations[] = {0,          1,          2147483647,
                                         2147483648, 4294967296, std::int64_t{1} << 44};
  Builder b;
  for (int i = 5; i >= 0; --i)  // sorting moves them
    b.add_slice(b.cpu, b.op, b.name("a"), i, kDurations[i], kNone<ArgsId>);
  const Trace trace = b.done();
  ASSERT_EQ(trace.slices().size(), 6u);
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(trace.dur_ns(SliceId{i}), kDurations[i]) << i;
  EXPECT_EQ(trace.slices().dur_ns.long_ns.size(), 3u);
}

// 65,536 tracks are those that two bytes tell apart.
TEST(TraceBuilderTest, AnyNumberOfTracksIsKept) {
  for (const std::uint32_t count : {65536u, 65538u}) {
    TraceBuilder builder;
    const CategoryId op = builder.category("cpu_op");
    const StringId name = builder.intern("a");
    std::vector<TrackId> tracks;
    for (std::uint32_t i = 0; i < count; ++i)
      tracks.push_back(builder.thread_track(number(1), number(i)));
    for (std::uint32_t i = count; i-- > 0;)  // sorting moves them
      builder.add_slice(tracks[i], op, name, i, 1, kNone<ArgsId>);
    const Trace trace = std::move(*std::move(builder).finish());
    ASSERT_EQ(trace.slices().size(), count);
    for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(raw(trace.slices().track[i]), i);
    EXPECT_EQ(trace.slices().track.high.size(), count == 65536 ? 0 : count);
  }
}

// Those of before the first that needs more.
TEST(TraceBuilderTest, ATrackBeyondTwoBytesMayComeLate) {
  TrackColumn<GrowingColumn> tracks;
  for (const std::uint32_t track : {5u, 65535u, 65541u, 7u, 0xfffffffeu})
    tracks.push_back(TrackId{track});
  ASSERT_EQ(tracks.size(), 5u);
  EXPECT_EQ(tracks[0], TrackId{5});
  EXPECT_EQ(tracks[1], TrackId{65535});
  EXPECT_EQ(tracks[2], TrackId{65541});
  EXPECT_EQ(tracks[3], TrackId{7});
  EXPECT_EQ(tracks[4], TrackId{0xfffffffe});
}

TEST(TraceBuilderTest, ANameAloneMakesNoStep) {
  Builder b;
  b.add_slice(b.cpu, b.op, b.name("ProfilerStep#3"), 50, 10, kNone<ArgsId>);
  EXPECT_TRUE(b.done().steps().empty());
}

TEST(TraceBuilderTest, AThreadAndAStreamOfOnePidAndTidAreTwoTracks) {
  Builder b;
  const TrackId stream = b.stream_track(number(1), number(1));
  EXPECT_NE(stream, b.cpu);
  EXPECT_EQ(b.thread_track(number(1), number(1)), b.cpu);
  EXPECT_EQ(b.stream_track(number(1), number(1)), stream);
  const ProcessId process = b.process(number(1));
  EXPECT_EQ(b.find_thread(process, number(1)), b.cpu);
  EXPECT_EQ(b.find_stream(process, number(1)), stream);
  EXPECT_EQ(b.find_stream(process, number(2)), std::nullopt);
  EXPECT_NE(b.async_track(number(1), "net", number(1)), stream);
  EXPECT_NE(b.counter_track(number(1), "memory", "used"),
            b.counter_track(number(1), "memory", "free"));
  b.set_track_name(b.cpu, b.name("main"));
  b.set_track_sort_index(stream, 5);
  b.set_stream_numbers(stream, 3, 4);
  const Trace trace = b.done();
  EXPECT_EQ(trace.text(trace.track(b.cpu).name), "main");
  EXPECT_EQ(trace.track(stream).name, kNone<StringId>);
  EXPECT_EQ(trace.track(stream).sort_index, 5);
  EXPECT_EQ(trace.track(stream).device, 3);
  EXPECT_EQ(trace.track(stream).stream, 4);
}

TEST(TraceBuilderTest, AThreadThatTurnsOutToBeAStreamKeepsItsSlices) {
  Builder b;
  const TrackId track = b.thread_track(number(0), number(7));
  b.add_slice(track, b.op, b.name("k"), 0, 1, kNone<ArgsId>);
  b.make_stream(track);
  EXPECT_EQ(b.stream_track(number(0), number(7)), track);
  EXPECT_NE(b.thread_track(number(0), number(7)), track);
  const Trace trace = b.done();
  EXPECT_EQ(trace.track(SliceId{0}).kind, TrackKind::kStream);
  EXPECT_EQ(trace.track(SliceId{0}).stream, 7);
}

TEST(TraceBuilderTest, FlowsAreSortedByTheirBegin) {
  Builder b;
  Flow late, early;
  late.from_ns = 20, late.to_ns = 21, late.from_track = late.to_track = b.cpu;
  early.from_ns = 10, early.to_ns = 30, early.from_track = early.to_track = b.cpu;
  b.add_flow(late);
  b.add_flow(early);
  EXPECT_EQ(b.event_count(), 0u);  // the importer counts what its format has
  const Trace trace = b.done();
  ASSERT_EQ(trace.flows().size(), 2u);
  EXPECT_EQ(trace.flows()[0].from_ns, 10);
}

TEST(TraceBuilderTest, TheWindowReachesFromTheFirstCaptureSpanToTheLast) {
  Builder b;
  b.add_slice(b.cpu, b.op, b.name("before any span"), 10, 5, kNone<ArgsId>);
  for (const std::int64_t start : {200, 100})
    b.add_slice(b.cpu, b.category("Trace"), b.name("PyTorch Profiler (0)"), start, 50,
                kNone<ArgsId>);
  const Trace trace = b.done();
  EXPECT_TRUE(trace.has_window_span());
  EXPECT_EQ(trace.window_start_ns(), 100);
  EXPECT_EQ(trace.window_end_ns(), 250);
}

TEST(TraceBuilderTest, NegativeAndEndlessDurationsAreReadAsZero) {
  Builder b;
  b.add_slice(b.cpu, b.op, b.name("negative"), 10, -5, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("endless"), 11, INT64_MAX, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("before all clocks"), INT64_MIN, 7, kNone<ArgsId>);
  const Trace trace = b.done();
  EXPECT_EQ(trace.start_ns(SliceId{0}), -kMaxTimeNs);
  EXPECT_EQ(trace.dur_ns(SliceId{0}), 0);
  EXPECT_EQ(trace.dur_ns(SliceId{1}), 0);
  EXPECT_EQ(trace.name(SliceId{2}), "endless");
  EXPECT_EQ(trace.dur_ns(SliceId{2}), 0);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kNegativeDuration].count, 1u);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kBadTime].count, 2u);
}

// Analyses add durations up; their sum must fit 64 bits whatever a file says.
TEST(TraceBuilderTest, LongDurationsShareNineYears) {
  constexpr std::int64_t most = DurationLimit::kMostLongNs;
  Builder b;
  b.add_slice(b.cpu, b.op, b.name("all but a day"), 0, most - 86'400'000'000'000, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("no room"), 1, 2 * 86'400'000'000'000, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("room"), 2, 86'400'000'000'000, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("short"), 3, DurationLimit::kLongNs, kNone<ArgsId>);
  const Trace trace = b.done();
  EXPECT_EQ(trace.dur_ns(SliceId{0}), most - 86'400'000'000'000);
  EXPECT_EQ(trace.dur_ns(SliceId{1}), 0);
  EXPECT_EQ(trace.dur_ns(SliceId{2}), 86'400'000'000'000);
  EXPECT_EQ(trace.dur_ns(SliceId{3}), DurationLimit::kLongNs);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kBadTime].count, 1u);
}

TEST(TraceBuilderTest, CategoriesBeyondTheLimitAreCountedAsLost) {
  Builder b;  // "none" and one for b.op exist
  CategoryId last{};
  for (int i = 0; i < 65'535; ++i) last = b.category(std::to_string(i));
  b.add_slice(b.cpu, last, b.name("r"), 0, 1, kNone<ArgsId>);
  const Trace trace = b.done();
  EXPECT_EQ(trace.categories()[raw(trace.slices().category[0])].text, kNone<StringId>);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kFieldLost].count, 2u);
}

}  // namespace
}  // namespace lanescope
