// Pairs themselves are tested in chrome_events_test.cpp; here is that they do not depend on how the work is cut.
#include "lanescope/format/kineto_json/pair_arrows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lanescope::format {
namespace {

constexpr std::size_t kOnePiece = 1u << 30;

// Three threads, of which one has a stream with its pid and tid, and points of a few ids in between and around them.
struct ArrowSketch : TraceBuilder {
  std::vector<ArrowPoint> points;

  explicit ArrowSketch(std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<TrackId> tracks;
    for (const std::int64_t tid : {3, 1, 2})
      tracks.push_back(thread_track({false, 1}, {false, tid}));
    tracks.push_back(stream_track({false, 1}, {false, 2}));
    const std::size_t count = random() % 400, ids = 1 + random() % 60, times = 1 + random() % 200;
    for (std::size_t i = 0; i < count; ++i) {
      ArrowPoint point{};
      point.id_is_text = random() % 5 == 0;
      const auto id = static_cast<std::int64_t>(seed % 3 == 0 ? random() % ids : i % ids);
      point.id_value = point.id_is_text
                           ? static_cast<std::int64_t>(raw(intern("id " + std::to_string(id))))
                           : id;
      point.name = intern(random() % 9 == 0 ? "other" : "arrow");
      point.category = category(i < count / 2 ? "ac2g" : "fwdbwd");
      point.track = tracks[random() % tracks.size()];
      point.time_ns = static_cast<std::int64_t>(random() % times);
      point.phase = "sstff"[random() % 5];
      point.binds_enclosing = random() % 2 == 0;
      point.event_index = skip_event();
      points.push_back(point);
    }
  }

  // Each arrow in the order of the builder, and what found no partner.
  static std::string joined(std::uint32_t seed, unsigned threads, std::size_t piece_points,
                            bool reversed = false) {
    ArrowSketch sketch(seed);
    if (reversed) std::reverse(sketch.points.begin(), sketch.points.end());
    pair_arrows(sketch.points, sketch, threads, piece_points);
    const auto trace = std::move(sketch).finish();
    if (!trace) return "no trace";
    std::string text;
    for (const Flow& flow : trace->flows())
      for (const std::int64_t value :
           {flow.from_ns, flow.to_ns, flow.id_value, std::int64_t{raw(flow.from_track)},
            std::int64_t{raw(flow.to_track)}, std::int64_t{raw(flow.name)},
            std::int64_t{raw(flow.category)}, std::int64_t{flow.id_is_text},
            std::int64_t{flow.binds_enclosing}})
        text += std::to_string(value) + ' ';
    return text +
           "without: " + std::to_string(trace->import_stats()[ImportIssue::kOrphanFlow].count);
  }
};

TEST(PairArrowsTest, ResultDoesNotDependOnThreadsAndPieces) {
  std::size_t arrows = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const std::string whole = ArrowSketch::joined(seed, 1, kOnePiece);
    arrows += static_cast<std::size_t>(std::count(whole.begin(), whole.end(), ' ')) / 9;
    EXPECT_EQ(ArrowSketch::joined(seed, 1, kOnePiece, true), whole) << "reversed, seed " << seed;
    for (const unsigned threads : {1u, 2u, 4u})
      for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{100}})
        ASSERT_EQ(ArrowSketch::joined(seed, threads, piece), whole)
            << "seed " << seed << ", " << threads << " threads, pieces of " << piece;
  }
  EXPECT_GT(arrows, 1000u);
}

TEST(PairArrowsTest, NoPointsAreNoArrows) {
  TraceBuilder builder;
  pair_arrows({}, builder, 4);
  const auto trace = std::move(builder).finish();
  ASSERT_TRUE(trace);
  EXPECT_TRUE(trace->flows().empty());
}

}  // namespace
}  // namespace lanescope::format
