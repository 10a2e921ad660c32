#include "lanescope/analysis/host_timeline.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

// Two threads with 200 operators of 6 each, 10 apart.
Trace two_threads() {
  Sketch sketch;
  for (int i = 0; i < 200; ++i)
    for (const std::int64_t tid : {100, 101})
      sketch.op("aten::op" + std::to_string(i), 10 * i + tid - 100, 6, {.tid = tid});
  return sketch.trace();
}

template <typename Visit>
std::string parts_of(Visit visit) {
  std::string text;
  visit([&](SliceId slice, std::int64_t from, std::int64_t to) {
    text +=
        std::to_string(raw(slice)) + " " + std::to_string(from) + " " + std::to_string(to) + ", ";
  });
  return text;
}

TEST(HostReaderTest, FindsWhatTheTimelineFindsInAnyOrderOfStretches) {
  const Trace trace = two_threads();
  const HostTimeline timeline(trace);
  const TrackId first = trace.slices().track[0], second = trace.slices().track[399];
  ASSERT_NE(first, second);
  HostReader reader(timeline);
  for (const auto& [track, start_ns] :
       std::vector<std::pair<TrackId, std::int64_t>>{{first, -5},
                                                     {first, 3},
                                                     {first, 8},
                                                     {first, 31},
                                                     {first, 900},
                                                     {first, 1'989},
                                                     {first, 5'000},
                                                     {first, 40},
                                                     {second, 40},
                                                     {second, 1'000},
                                                     {first, 1'001}}) {
    const std::int64_t end_ns = start_ns + 35;
    EXPECT_EQ(parts_of([&](auto each) { reader.visit(track, start_ns, end_ns, each); }),
              parts_of([&](auto each) { timeline.visit(track, start_ns, end_ns, each); }))
        << start_ns;
  }
}

}  // namespace
}  // namespace lanescope::analysis
