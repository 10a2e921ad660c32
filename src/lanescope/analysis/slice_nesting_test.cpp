#include "lanescope/analysis/slice_nesting.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/real_traces.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

template <typename Row>
std::vector<Row> all(const UnsetArray<Row>& rows) {
  return {rows.rows().begin(), rows.rows().end()};
}

TEST(SliceNestingTest, SelfTimeIsTotalMinusDirectChildrenOnly) {
  const Trace trace =
      std::move(Sketch().op("a", 0, 100).op("b", 10, 50).op("c", 20, 10).op("d", 70, 5)).trace();
  const SliceNesting nesting = compute_slice_nesting(trace);
  EXPECT_EQ(all(nesting.parent), (std::vector{kNone<SliceId>, SliceId{0}, SliceId{1}, SliceId{0}}));
  EXPECT_EQ(all(nesting.depth), (std::vector<std::uint32_t>{0, 1, 2, 1}));
  EXPECT_EQ(all(nesting.self_ns), (std::vector<std::int64_t>{45, 40, 10, 5}));
}

// C overlaps B's end, so it is A's child; D starts where A ends and has no parent.
TEST(SliceNestingTest, PartialOverlapDetachesToTheOuterLevel) {
  const Trace trace =
      std::move(Sketch().op("A", 0, 100).op("B", 10, 40).op("C", 40, 20).op("D", 100, 5)).trace();
  const SliceNesting nesting = compute_slice_nesting(trace);
  EXPECT_EQ(all(nesting.parent),
            (std::vector{kNone<SliceId>, SliceId{0}, SliceId{0}, kNone<SliceId>}));
  EXPECT_EQ(nesting.self_ns[0], 100 - 40 - 20);
}

TEST(SliceNestingTest, ThreadsAndKernelsAreApartAndPythonFramesOnlyOnRequest) {
  const Trace trace = std::move(Sketch()
                                    .slice("python_function", "f", 0, 100)
                                    .op("a", 10, 50)
                                    .op("b", 20, 10, {.tid = 200})
                                    .kernel("k", 15, 5))
                          .trace();
  SliceNesting nesting = compute_slice_nesting(trace);
  EXPECT_EQ(all(nesting.depth),
            (std::vector<std::uint32_t>{SliceNesting::kNotNested, 0, 0, SliceNesting::kNotNested}));
  nesting = compute_slice_nesting(trace, {.python_frames = true});
  EXPECT_EQ(nesting.depth[1], 1u);
}

// Returns how many slices of a thread are inside another one.
std::size_t expect_as_in_one_piece(const Trace& trace, const std::string& what) {
  std::size_t inside = 0;
  for (const bool frames : {false, true}) {
    const SliceNesting one = compute_slice_nesting(trace, {.python_frames = frames});
    for (const SliceId parent : one.parent.rows()) inside += parent != kNone<SliceId> ? 1 : 0;
    for (const unsigned threads : {2u, 4u})
      for (const std::uint32_t at_once : {1u, 2u, 7u, 64u}) {
        const SliceNesting shared = compute_slice_nesting(
            trace, {.python_frames = frames, .threads = threads, .slices_at_once = at_once});
        const std::string where = what + ": " + std::to_string(threads) + " threads, pieces of " +
                                  std::to_string(at_once);
        EXPECT_EQ(all(shared.parent), all(one.parent)) << where;
        EXPECT_EQ(all(shared.depth), all(one.depth)) << where;
        EXPECT_EQ(all(shared.self_ns), all(one.self_ns)) << where;
      }
  }
  return inside;
}

// Many begin or end together, some last no time, some overlap without nesting, some stay open for long.
TEST(SliceNestingTest, PiecesAndThreadsFindTheSameForDrawnTraces) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t limit) {
      return static_cast<std::int64_t>(random() % limit);
    };
    Sketch sketch;
    std::int64_t at = 0;
    for (int i = 0; i < 150; ++i) {
      at += below(3) == 0 ? 0 : below(10);
      const std::int64_t tid = 100 + below(8) / 7;
      const std::int64_t dur = below(15) == 0 ? 100 * below(12) : below(4) == 0 ? 0 : below(40);
      if (below(4) == 0)
        sketch.slice("python_function", "f", at, dur, {.tid = tid});
      else if (below(8) == 0)
        sketch.kernel("k", at, dur);
      else
        sketch.op("a", at, dur, {.tid = tid});
    }
    EXPECT_GT(expect_as_in_one_piece(sketch.trace(), "seed " + std::to_string(seed)), 20u);
  }
}

TEST(SliceNestingTest, PiecesAndThreadsFindTheSameForRealTraces) {
  std::size_t inside = 0;
  for (const auto& path : testing::json_traces(testing::shipped_traces()))
    if (const auto trace = format::read_trace(path.string()))
      inside += expect_as_in_one_piece(*trace, path.string());
  EXPECT_GT(inside, 1000u);
}

// A piece of one slice each: what is open is a chain through all pieces before, and every duration goes to another piece.
TEST(SliceNestingTest, ChainsOfParentsReachOverManyPieces) {
  const Trace trace = std::move(Sketch()
                                    .op("step", 0, 1000)
                                    .op("a", 10, 500)
                                    .op("b", 20, 100)
                                    .op("c", 130, 100)
                                    .op("over the end of a", 400, 200)
                                    .op("d", 700, 50))
                          .trace();
  const SliceNesting nesting = compute_slice_nesting(trace, {.threads = 3, .slices_at_once = 1});
  EXPECT_EQ(all(nesting.parent), (std::vector{kNone<SliceId>, SliceId{0}, SliceId{1}, SliceId{1},
                                              SliceId{0}, SliceId{0}}));
  EXPECT_EQ(all(nesting.depth), (std::vector<std::uint32_t>{0, 1, 2, 2, 1, 1}));
  EXPECT_EQ(all(nesting.self_ns), (std::vector<std::int64_t>{250, 300, 100, 100, 200, 50}));
}

TEST(IntervalUnionTest, CountsOverlapOnceAndAnswersInsideAWindow) {
  IntervalUnion busy;
  busy.add(50, 60);
  busy.add(0, 10);
  busy.add(5, 20);
  busy.add(20, 20);
  busy.finish();
  EXPECT_EQ(busy.length_ns(), 30);
  EXPECT_EQ(busy.length_within_ns(15, 55), 10);
  EXPECT_EQ(busy.length_within_ns(-5, 5), 5);
  EXPECT_EQ(busy.length_within_ns(60, 10), 0);
  EXPECT_EQ(IntervalUnion().length_ns(), 0);
}

}  // namespace
}  // namespace lanescope::analysis
