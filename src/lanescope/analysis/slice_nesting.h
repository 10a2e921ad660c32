// Which slice is inside which, on each CPU thread: the tree for self times and `lanescope tree`.
#pragma once
#include <cstdint>

#include "lanescope/base/unset_array.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// One entry per slice. Other slices (other tracks, other kinds) have no parent
// and depth kNotNested.
struct SliceNesting {
  static constexpr std::uint32_t kNotNested = ~std::uint32_t{0};
  UnsetArray<SliceId> parent;       // kNone<SliceId>: at the top of its track
  UnsetArray<std::uint32_t> depth;  // 0 at the top
  // dur minus the durations of the direct children, nanoseconds. Negative only if children partly
  // overlap each other; it is kept then.
  UnsetArray<std::int64_t> self_ns;
};

struct NestingOptions {
  bool python_frames = false;               // python_function slices take part
  unsigned threads = 1;                     // 0: usual_threads()
  std::uint32_t slices_at_once = 1u << 16;  // that one thread takes; tests take few
};

// The rule of torch (docs/definitions/key_averages.md, rule 4): in order of (start, longer first),
// a slice is a child of the innermost open slice that contains it wholly. An open slice that ends
// before this one starts or ends is closed, so a slice with a partial overlap belongs to the outer
// level. O(n), no sort: a Trace already has that order. The same for any number of threads. Any thread.
SliceNesting compute_slice_nesting(const Trace& trace, const NestingOptions& options = {});

}  // namespace lanescope::analysis
