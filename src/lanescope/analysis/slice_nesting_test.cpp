#include "lanescope/analysis/slice_nesting.h"

#include <gtest/gtest.h>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

TEST(SliceNestingTest, SelfTimeIsTotalMinusDirectChildrenOnly) {
  const Trace trace =
      std::move(Sketch().op("a", 0, 100).op("b", 10, 50).op("c", 20, 10).op("d", 70, 5)).trace();
  const SliceNesting nesting = compute_slice_nesting(trace);
  EXPECT_EQ(nesting.parent, (std::vector{kNone<SliceId>, SliceId{0}, SliceId{1}, SliceId{0}}));
  EXPECT_EQ(nesting.depth, (std::vector<std::uint32_t>{0, 1, 2, 1}));
  EXPECT_EQ(nesting.self_ns, (std::vector<std::int64_t>{45, 40, 10, 5}));
}

// C overlaps B's end, so it is A's child; D starts where A ends and has no parent.
TEST(SliceNestingTest, PartialOverlapDetachesToTheOuterLevel) {
  const Trace trace =
      std::move(Sketch().op("A", 0, 100).op("B", 10, 40).op("C", 40, 20).op("D", 100, 5)).trace();
  const SliceNesting nesting = compute_slice_nesting(trace);
  EXPECT_EQ(nesting.parent, (std::vector{kNone<SliceId>, SliceId{0}, SliceId{0}, kNone<SliceId>}));
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
  EXPECT_EQ(nesting.depth,
            (std::vector<std::uint32_t>{SliceNesting::kNotNested, 0, 0, SliceNesting::kNotNested}));
  nesting = compute_slice_nesting(trace, {.python_frames = true});
  EXPECT_EQ(nesting.depth[1], 1u);
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
