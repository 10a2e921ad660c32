// Halves of arrows, as Chrome's format has them, joined to whole ones.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// 's' start, 't' step or 'f' end of an arrow. There are two for each arrow: 32 bytes, so the id is as in Flow.
struct ArrowPoint {
  std::int64_t time_ns;
  std::int64_t id_value;
  StringId name;
  TrackId track;
  std::uint32_t event_index;  // no two points have the same
  CategoryId category;
  char phase;
  bool id_is_text : 1;
  bool binds_enclosing : 1;
};
static_assert(sizeof(ArrowPoint) == 32);

// Points of one (category, name, id), in order of time: each step or end is reached from the latest start or step before it. Ids are
// reused in old files; time decides. One start with many ends is a launch of a CUDA graph. What has no partner is counted as
// kOrphanFlow. An end that names the pid and tid of both a thread and a stream means the stream.
//
// The arrows and their order are the same for any order of the points, any number of `threads` (the caller's among them) and any
// `piece_points`, which is how many points a thread sorts and joins at once. O(n log n), O(n) where the points are a few sorted
// runs, as writers leave them. Memory: the arrows, and 72 bytes for each point of a piece and thread.
void pair_arrows(std::vector<ArrowPoint> points, TraceBuilder& builder, unsigned threads,
                 std::size_t piece_points = std::size_t{1} << 11);

}  // namespace lanescope::format
