// Which slice lies inside which, on each CPU thread: the tree that self times and `lanescope tree`
// are made of.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// One entry a slice. Slices that take no part (other tracks, other kinds) have no parent and depth
// kNotNested.
struct SliceNesting {
  static constexpr std::uint32_t kNotNested = ~std::uint32_t{0};
  std::vector<SliceId> parent;       // kNone<SliceId>: at the top of its track
  std::vector<std::uint32_t> depth;  // 0 at the top
  // dur minus the durations of the direct children, nanoseconds; never negative, because children
  // neither overlap their parent's end nor, partial overlaps apart, each other. With partial
  // overlaps among children it may be; it is kept.
  std::vector<std::int64_t> self_ns;
};

struct NestingOptions {
  bool python_frames = false;  // python_function slices take part
};

// The rule (recording.md 2.7 rule 4, torch's own): in order of (start, longer first), a slice is a
// child of the innermost open slice that contains it wholly; an open slice that ends before this
// one starts, or before it ends, is closed. So a partial overlap detaches to the outer level. O(n),
// no sort: a Trace is in that order already. Any thread.
SliceNesting compute_slice_nesting(const Trace& trace, const NestingOptions& options = {});

}  // namespace lanescope::analysis
