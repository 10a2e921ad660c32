#include "lanescope/model/trace_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace lanescope {
namespace {

Scalar number(std::int64_t value) { return {false, value, kNone<StringId>}; }

struct Builder : TraceBuilder {
  TrackId cpu = track(number(1), number(1), false);
  CategoryId op = category("cpu_op");
  StringId name(std::string_view text) { return intern(text); }
  Trace done() { return std::move(*std::move(*this).finish()); }
};

TEST(TraceBuilderTest, SlicesAreSortedByTrackStartAndLength) {
  Builder b;
  const TrackId gpu = b.track(number(0), number(7), true);
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

TEST(TraceBuilderTest, BeginAndEndPairByNestingAndName) {
  Builder b;
  b.add_begin(b.cpu, b.op, b.name("outer"), 0, kNone<ArgsId>);
  b.add_begin(b.cpu, b.op, b.name("lost end"), 2, kNone<ArgsId>);
  b.add_end(b.cpu, b.name("outer"), 9, kNone<ArgsId>);
  b.add_end(b.cpu, b.name("outer"), 10, kNone<ArgsId>);  // nothing is open
  b.add_begin(b.cpu, b.op, b.name("open"), 12, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("x"), 13, 7, kNone<ArgsId>);  // ends at 20
  const Trace trace = b.done();
  ASSERT_EQ(trace.slices().size(), 4u);
  EXPECT_EQ(trace.dur_ns(SliceId{0}), 9);  // outer
  EXPECT_EQ(trace.dur_ns(SliceId{1}), 7);  // lost end: closed with outer
  EXPECT_EQ(trace.dur_ns(SliceId{2}), 8);  // open: to the end of the trace
  EXPECT_EQ(trace.import_stats()[ImportIssue::kBeginWithoutEnd].count, 2u);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kEndWithoutBegin].count, 1u);
}

TEST(TraceBuilderTest, OneFlowStartMayHaveManyEndsAndOrphansAreCounted) {
  Builder b;
  const CategoryId flow = b.category("ac2g");
  const TrackId gpu = b.track(number(0), number(7), true);
  const StringId name = b.name("ac2g");
  b.add_flow('f', gpu, flow, name, number(5), 30, true);
  b.add_flow('f', gpu, flow, name, number(5), 20, true);
  b.add_flow('s', b.cpu, flow, name, number(5), 10, false);
  b.add_flow('f', b.cpu, flow, name, number(6), 11, true);   // no start
  b.add_flow('s', b.cpu, flow, name, number(7), 12, false);  // no end
  b.add_flow('f', gpu, flow, name, number(8), 13, true);     // ends before it starts: skewed clocks
  b.add_flow('s', b.cpu, flow, name, number(8), 14, false);
  const Trace trace = b.done();
  ASSERT_EQ(trace.flows().size(), 3u);
  EXPECT_EQ(trace.flows()[0].to_ns, 20);
  EXPECT_EQ(trace.flows()[1].to_ns, 30);
  EXPECT_EQ(trace.flows()[2].to_ns, 13);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kOrphanFlow].count, 2u);
}

// A thread and a stream may have the same pid and tid. The arrow's end is then on the stream,
// whichever of the three came first.
TEST(TraceBuilderTest, AnArrowEndsOnTheStreamInEveryOrderOfTheFile) {
  std::array<int, 4> order{0, 1, 2, 3};
  do {
    TraceBuilder builder;
    const Scalar pid{false, 0}, tid{false, 7}, id{false, 1};
    const StringId name = builder.intern("n");
    const CategoryId cpu = builder.category("cpu_op"), gpu = builder.category("kernel");
    for (const int event : order) {
      if (event == 0)
        builder.add_slice(builder.track(pid, tid, false), cpu, name, 0, 9, kNone<ArgsId>);
      if (event == 1)
        builder.add_slice(builder.track(pid, tid, true), gpu, name, 5, 9, kNone<ArgsId>);
      if (event == 2) builder.add_flow('s', builder.flow_track(pid, tid), cpu, name, id, 1, false);
      if (event == 3) builder.add_flow('f', builder.flow_track(pid, tid), cpu, name, id, 5, true);
    }
    const auto trace = std::move(builder).finish();
    ASSERT_TRUE(trace && trace->flows().size() == 1);
    EXPECT_EQ(trace->tracks().size(), 2u);
    EXPECT_EQ(trace->track(trace->flows()[0].from_track).kind, TrackKind::kStream);
    EXPECT_EQ(trace->track(trace->flows()[0].to_track).kind, TrackKind::kStream);
  } while (std::next_permutation(order.begin(), order.end()));
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

TEST(TraceBuilderTest, ReusedFlowIdsPairByTime) {
  Builder b;
  const CategoryId flow = b.category("async");
  const StringId name = b.name("launch");
  for (const std::int64_t at : {100, 200}) {
    b.add_flow('s', b.cpu, flow, name, number(1), at, false);
    b.add_flow('f', b.cpu, flow, name, number(1), at + 10, true);
  }
  const Trace trace = b.done();
  ASSERT_EQ(trace.flows().size(), 2u);
  EXPECT_EQ(trace.flows()[1].from_ns, 200);
  EXPECT_EQ(trace.flows()[1].to_ns, 210);
}

TEST(TraceBuilderTest, StepsComeFromProfilerStepRangesOfTheCpu) {
  Builder b;
  const CategoryId note = b.category("user_annotation");
  b.add_slice(b.cpu, note, b.name("ProfilerStep#3"), 50, 10, kNone<ArgsId>);
  b.add_slice(b.cpu, note, b.name("ProfilerStep#2"), 10, 10, kNone<ArgsId>);
  b.add_slice(b.cpu, note, b.name("ProfilerStep#"), 10, 10, kNone<ArgsId>);
  b.add_slice(b.track(number(0), number(7), true), b.category("gpu_user_annotation"),
              b.name("ProfilerStep#2"), 10, 10, kNone<ArgsId>);
  const Trace trace = b.done();
  ASSERT_EQ(trace.steps().size(), 2u);
  EXPECT_EQ(trace.steps()[0].number, 2);
  EXPECT_EQ(trace.steps()[1].number, 3);
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

TEST(TraceBuilderTest, NegativeAndEndlessDurationsAreMended) {
  Builder b;
  b.add_slice(b.cpu, b.op, b.name("negative"), 10, -5, kNone<ArgsId>);
  b.add_slice(b.cpu, b.op, b.name("endless"), 10, INT64_MAX, kNone<ArgsId>);
  const Trace trace = b.done();
  EXPECT_EQ(trace.name(SliceId{0}), "endless");
  EXPECT_EQ(trace.end_ns(SliceId{0}), INT64_MAX);
  EXPECT_EQ(trace.dur_ns(SliceId{1}), 0);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kNegativeDuration].count, 1u);
}

TEST(TraceBuilderTest, BeginAndEndArgumentsAreMerged) {
  Builder b;
  ArgsId ids[2];
  for (int i = 0; i < 2; ++i) {
    b.args().begin();
    b.args().add_int(b.name(i == 0 ? "correlation" : "bytes"),
                     i == 0 ? ArgKey::kCorrelation : ArgKey::kBytes, 7 + i);
    ids[i] = b.args().end();
  }
  b.add_begin(b.cpu, b.op, b.name("r"), 0, ids[0]);
  b.add_end(b.cpu, kNone<StringId>, 5, ids[1]);
  const Trace trace = b.done();
  EXPECT_EQ(trace.slice_args(SliceId{0}).integer(ArgKey::kCorrelation), 7);
  EXPECT_EQ(trace.slice_args(SliceId{0}).integer(ArgKey::kBytes), 8);
}

TEST(TraceBuilderTest, ARangeLongerThanTimeIsCutAtTheLongestDuration) {
  Builder b;
  b.add_begin(b.cpu, b.op, b.name("r"), INT64_MIN + 1, kNone<ArgsId>);
  b.add_end(b.cpu, b.name("r"), INT64_MAX, kNone<ArgsId>);
  EXPECT_EQ(b.done().dur_ns(SliceId{0}), INT64_MAX);
}

TEST(TraceBuilderTest, EndsWithoutBeginCostNoWalkOverTheOpenRanges) {
  Builder b;
  constexpr std::uint64_t kCount = 200'000;  // a walk each would be 4e10 steps
  for (std::uint64_t i = 0; i < kCount; ++i)
    b.add_begin(b.cpu, b.op, b.name("open"), 1, kNone<ArgsId>);
  for (std::uint64_t i = 0; i < kCount; ++i) b.add_end(b.cpu, b.name("other"), 2, kNone<ArgsId>);
  const Trace trace = b.done();
  EXPECT_EQ(trace.slices().size(), kCount);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kEndWithoutBegin].count, kCount);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kBeginWithoutEnd].count, kCount);
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
