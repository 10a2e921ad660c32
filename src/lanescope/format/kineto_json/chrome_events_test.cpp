#include "lanescope/format/kineto_json/chrome_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lanescope::format {
namespace {

Scalar scalar_of(std::int64_t value) { return {false, value, kNone<StringId>}; }

struct ChromeBuilder : TraceBuilder {
  ChromeEvents chrome{*this};
  TrackId cpu = chrome.track(scalar_of(1), scalar_of(1), false);
  CategoryId op = category("cpu_op");
  Trace done() {
    chrome.finish();
    return std::move(*std::move(*this).finish());
  }
};

TEST(ChromeEventsTest, BeginAndEndPairByNestingAndName) {
  ChromeBuilder b;
  b.chrome.add_begin(b.cpu, b.op, b.intern("outer"), 0, kNone<ArgsId>);
  b.chrome.add_begin(b.cpu, b.op, b.intern("lost end"), 2, kNone<ArgsId>);
  b.chrome.add_end(b.cpu, b.intern("outer"), 9, kNone<ArgsId>);
  b.chrome.add_end(b.cpu, b.intern("outer"), 10,
                   kNone<ArgsId>);  // nothing is open
  b.chrome.add_begin(b.cpu, b.op, b.intern("open"), 12, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.intern("x"), 13, 7, kNone<ArgsId>);  // ends at 20
  const Trace trace = b.done();
  ASSERT_EQ(trace.slices().size(), 4u);
  EXPECT_EQ(trace.dur_ns(SliceId{0}), 9);  // outer
  EXPECT_EQ(trace.dur_ns(SliceId{1}), 7);  // lost end: closed with outer
  EXPECT_EQ(trace.dur_ns(SliceId{2}), 8);  // open: to the end of the trace
  EXPECT_EQ(trace.import_stats()[ImportIssue::kBeginWithoutEnd].count, 2u);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kEndWithoutBegin].count, 1u);
}

TEST(ChromeEventsTest, OneFlowStartMayHaveManyEndsAndOrphansAreCounted) {
  ChromeBuilder b;
  const CategoryId flow = b.category("ac2g");
  const TrackId gpu = b.stream_track(scalar_of(0), scalar_of(7));
  const StringId name = b.intern("ac2g");
  b.chrome.add_flow('f', gpu, flow, name, scalar_of(5), 30, true);
  b.chrome.add_flow('f', gpu, flow, name, scalar_of(5), 20, true);
  b.chrome.add_flow('s', b.cpu, flow, name, scalar_of(5), 10, false);
  b.chrome.add_flow('f', b.cpu, flow, name, scalar_of(6), 11, true);   // no start
  b.chrome.add_flow('s', b.cpu, flow, name, scalar_of(7), 12, false);  // no end
  b.chrome.add_flow('f', gpu, flow, name, scalar_of(8), 13,
                    true);  // ends before it starts: skewed clocks
  b.chrome.add_flow('s', b.cpu, flow, name, scalar_of(8), 14, false);
  const Trace trace = b.done();
  ASSERT_EQ(trace.flows().size(), 3u);
  EXPECT_EQ(trace.flows()[0].to_ns, 20);
  EXPECT_EQ(trace.flows()[1].to_ns, 30);
  EXPECT_EQ(trace.flows()[2].to_ns, 13);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kOrphanFlow].count, 2u);
}

// A thread and a stream may have the same pid and tid. The arrow's end is then on the stream,
// whichever of the three came first.
TEST(ChromeEventsTest, AnArrowEndsOnTheStreamInEveryOrderOfTheFile) {
  std::array<int, 4> order{0, 1, 2, 3};
  do {
    TraceBuilder builder;
    ChromeEvents chrome(builder);
    const Scalar pid{false, 0}, tid{false, 7}, id{false, 1};
    const StringId name = builder.intern("n");
    const CategoryId cpu = builder.category("cpu_op"), gpu = builder.category("kernel");
    for (const int event : order) {
      if (event == 0)
        builder.add_slice(chrome.track(pid, tid, false), cpu, name, 0, 9, kNone<ArgsId>);
      if (event == 1)
        builder.add_slice(chrome.track(pid, tid, true), gpu, name, 5, 9, kNone<ArgsId>);
      if (event == 2) chrome.add_flow('s', chrome.point_track(pid, tid), cpu, name, id, 1, false);
      if (event == 3) chrome.add_flow('f', chrome.point_track(pid, tid), cpu, name, id, 5, true);
    }
    chrome.finish();
    const auto trace = std::move(builder).finish();
    ASSERT_TRUE(trace && trace->flows().size() == 1);
    EXPECT_EQ(trace->tracks().size(), 2u);
    EXPECT_EQ(trace->track(trace->flows()[0].from_track).kind, TrackKind::kStream);
    EXPECT_EQ(trace->track(trace->flows()[0].to_track).kind, TrackKind::kStream);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ChromeEventsTest, ReusedFlowIdsPairByTime) {
  ChromeBuilder b;
  const CategoryId flow = b.category("async");
  const StringId name = b.intern("launch");
  for (const std::int64_t at : {100, 200}) {
    b.chrome.add_flow('s', b.cpu, flow, name, scalar_of(1), at, false);
    b.chrome.add_flow('f', b.cpu, flow, name, scalar_of(1), at + 10, true);
  }
  const Trace trace = b.done();
  ASSERT_EQ(trace.flows().size(), 2u);
  EXPECT_EQ(trace.flows()[1].from_ns, 200);
  EXPECT_EQ(trace.flows()[1].to_ns, 210);
}

// Two starts at one time: the early end belongs to the first by pid and tid, the late one to the
// second, whichever the file names first.
TEST(ChromeEventsTest, StartsAtOneTimeAreInOrderOfTheirTracks) {
  for (const bool other_first : {false, true}) {
    ChromeBuilder b;
    const TrackId other = b.chrome.track(scalar_of(1), scalar_of(2), false);
    const CategoryId flow = b.category("ac2g");
    const StringId name = b.intern("ac2g");
    for (const TrackId from : {other_first ? other : b.cpu, other_first ? b.cpu : other})
      b.chrome.add_flow('s', from, flow, name, scalar_of(3), 21, false);
    b.chrome.add_flow('f', b.cpu, flow, name, scalar_of(3), 1, true);
    b.chrome.add_flow('f', b.cpu, flow, name, scalar_of(3), 40, true);
    const Trace trace = b.done();
    ASSERT_EQ(trace.flows().size(), 2u);
    EXPECT_EQ(trace.flows()[0].to_ns, 1);
    EXPECT_EQ(trace.flows()[0].from_track, b.cpu);
    EXPECT_EQ(trace.flows()[1].to_ns, 40);
    EXPECT_EQ(trace.flows()[1].from_track, other);
  }
}

// A chain of steps at one time could lead back to its start, and then no file could say it.
TEST(ChromeEventsTest, StepsAtTheTimeOfTheirStartAllComeFromTheStart) {
  ChromeBuilder b;
  const TrackId other = b.chrome.track(scalar_of(1), scalar_of(2), false);
  const CategoryId flow = b.category("ac2g");
  const StringId name = b.intern("ac2g");
  b.chrome.add_flow('s', other, flow, name, scalar_of(3), 15, false);
  b.chrome.add_flow('t', b.cpu, flow, name, scalar_of(3), 15, false);
  b.chrome.add_flow('t', other, flow, name, scalar_of(3), 15, false);
  const Trace trace = b.done();
  ASSERT_EQ(trace.flows().size(), 2u);
  EXPECT_EQ(trace.flows()[0].from_track, other);
  EXPECT_EQ(trace.flows()[0].to_track, b.cpu);
  EXPECT_EQ(trace.flows()[1].from_track, other);
  EXPECT_EQ(trace.flows()[1].to_track, other);
}

TEST(ChromeEventsTest, BeginAndEndArgumentsAreMerged) {
  ChromeBuilder b;
  ArgsId ids[2];
  for (int i = 0; i < 2; ++i) {
    b.args().begin();
    b.args().add_int(b.intern(i == 0 ? "correlation" : "bytes"),
                     i == 0 ? ArgKey::kCorrelation : ArgKey::kBytes, 7 + i);
    ids[i] = b.args().end();
  }
  b.chrome.add_begin(b.cpu, b.op, b.intern("r"), 0, ids[0]);
  b.chrome.add_end(b.cpu, kNone<StringId>, 5, ids[1]);
  const Trace trace = b.done();
  EXPECT_EQ(trace.slice_args(SliceId{0}).integer(ArgKey::kCorrelation), 7);
  EXPECT_EQ(trace.slice_args(SliceId{0}).integer(ArgKey::kBytes), 8);
}

TEST(ChromeEventsTest, ARangeLongerThanTimeHasNoLength) {
  ChromeBuilder b;
  b.chrome.add_begin(b.cpu, b.op, b.intern("r"), INT64_MIN + 1, kNone<ArgsId>);
  b.chrome.add_end(b.cpu, b.intern("r"), INT64_MAX, kNone<ArgsId>);
  const Trace trace = b.done();
  EXPECT_EQ(trace.dur_ns(SliceId{0}), 0);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kBadTime].count, 1u);
}

TEST(ChromeEventsTest, EndsWithoutBeginCostNoWalkOverTheOpenRanges) {
  ChromeBuilder b;
  constexpr std::uint64_t kCount = 200'000;  // a walk each would be 4e10 steps
  for (std::uint64_t i = 0; i < kCount; ++i)
    b.chrome.add_begin(b.cpu, b.op, b.intern("open"), 1, kNone<ArgsId>);
  for (std::uint64_t i = 0; i < kCount; ++i)
    b.chrome.add_end(b.cpu, b.intern("other"), 2, kNone<ArgsId>);
  const Trace trace = b.done();
  EXPECT_EQ(trace.slices().size(), kCount);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kEndWithoutBegin].count, kCount);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kBeginWithoutEnd].count, kCount);
}

TEST(ChromeEventsTest, DevicesAndStreamsMayBeTexts) {
  ChromeBuilder b;
  const auto text = [&](const char* value) { return Scalar{true, 0, b.intern(value)}; };
  const TrackId named = b.chrome.track(text("GPU 3"), text("stream 7 "), true);
  const TrackId mixed = b.chrome.track(scalar_of(1), text("default"), true);
  const TrackId numbers = b.chrome.track(scalar_of(2), scalar_of(20), true);
  const Trace trace = b.done();
  EXPECT_EQ(trace.track(named).device, 3);
  EXPECT_EQ(trace.track(named).stream, 7);
  EXPECT_EQ(trace.track(mixed).device, 1);
  EXPECT_EQ(trace.track(mixed).stream, std::nullopt);
  EXPECT_EQ(trace.track(numbers).device, 2);
  EXPECT_EQ(trace.track(numbers).stream, 20);
}

TEST(ChromeEventsTest, ANameIsForTheThreadAndTheStreamOfItsPidAndTid) {
  ChromeBuilder b;
  b.chrome.set_thread_name(scalar_of(1), scalar_of(1), b.intern("both"));
  b.chrome.set_thread_sort_index(scalar_of(5), scalar_of(6),
                                 9);  // without a slice
  const TrackId stream = b.chrome.track(scalar_of(1), scalar_of(1), true);
  const Trace trace = b.done();
  EXPECT_EQ(trace.text(trace.track(b.cpu).name), "both");
  EXPECT_EQ(trace.text(trace.track(stream).name), "both");
  ASSERT_EQ(trace.tracks().size(), 3u);
  EXPECT_EQ(trace.tracks()[2].sort_index, 9);
}

TEST(ChromeEventsTest, AMarkBetweenBeginAndEndOfAnAsyncSliceIsAnInstant) {
  ChromeBuilder b;
  const TrackId request = b.async_track(scalar_of(1), "net", scalar_of(4));
  const StringId name = b.intern("get");
  for (const char phase : {'b', 'n', 'e'})
    b.chrome.add_async(phase, request, b.op, name,
                       phase == 'n'   ? 5
                       : phase == 'b' ? 1
                                      : 9,
                       kNone<ArgsId>);
  const Trace trace = b.done();
  ASSERT_EQ(trace.slices().size(), 1u);
  EXPECT_EQ(trace.dur_ns(SliceId{0}), 8);
  ASSERT_EQ(trace.instants().size(), 1u);
  EXPECT_EQ(trace.instants().time_ns[0], 5);
  EXPECT_EQ(trace.instants().event_index[0], 1u);
  EXPECT_EQ(trace.import_stats().events, 3u);
}

TEST(ChromeEventsTest, RangesNamedProfilerStepAreSteps) {
  ChromeBuilder b;
  b.chrome.add_begin(b.cpu, b.op, b.intern("ProfilerStep#4"), 5, kNone<ArgsId>);
  b.chrome.add_end(b.cpu, kNone<StringId>, 9, kNone<ArgsId>);
  const Trace trace = b.done();
  ASSERT_EQ(trace.steps().size(), 1u);
  EXPECT_EQ(trace.steps()[0].number, 4);
}

}  // namespace
}  // namespace lanescope::format
