#include "lanescope/analysis/track_flame.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

// a [0, 100) with b [10, 30) and again b [40, 50); then a [100, 130). a: 130 in all, 100 of its own.
TEST(TrackFlameTest, EqualStacksAddUp) {
  const Trace trace =
      std::move(Sketch().op("a", 0, 100).op("b", 10, 20).op("b", 40, 10).op("a", 100, 30)).trace();
  const auto nodes = compute_track_flame(trace, trace.tracks()[0]);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].total, 130);
  EXPECT_EQ(nodes[0].self, 100);
  EXPECT_EQ(nodes[1].parent, 0u);
  EXPECT_EQ(nodes[1].total, 30);
  EXPECT_EQ(nodes[1].self, 30);
}

TEST(TrackFlameTest, ASliceThatOverlapsIsAStackOfItsOwn) {
  const Trace trace = std::move(Sketch().kernel("a", 0, 10).kernel("b", 5, 10)).trace();
  const auto nodes = compute_track_flame(trace, trace.tracks()[0]);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[1].parent, 1u);
  EXPECT_EQ(nodes[0].self + nodes[1].self, 20);
}

TEST(TrackFlameTest, FramesBelowTheLimitCountToTheFrameThatTheyLieIn) {
  Sketch sketch;
  for (int i = 0; i < 1100; ++i) sketch.op("f", i, 3000 - 2 * i);
  const Trace trace = sketch.trace();
  const auto nodes = compute_track_flame(trace, trace.tracks()[0]);
  ASSERT_EQ(nodes.size(), 1024u);
  EXPECT_EQ(nodes.back().self, 3000 - 2 * 1023);
  EXPECT_EQ(nodes.front().self, 2);
}

}  // namespace
}  // namespace lanescope::analysis
