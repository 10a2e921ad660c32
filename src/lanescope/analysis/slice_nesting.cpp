// Example, one thread: A [0, 100), B [10, 50), C [40, 60). B is inside A. C overlaps B's end, so B
// closes and C becomes A's second child: self(A) = 100 - 40 - 20.
#include "lanescope/analysis/slice_nesting.h"

#include "lanescope/analysis/nested_kinds.h"

namespace lanescope::analysis {
SliceNesting compute_slice_nesting(const Trace& trace, const NestingOptions& options) {
  SliceNesting nesting;
  const std::size_t count = trace.slices().size();
  nesting.parent.assign(count, kNone<SliceId>);
  nesting.depth.assign(count, SliceNesting::kNotNested);
  nesting.self_ns.assign(trace.slices().dur_ns.begin(), trace.slices().dur_ns.end());
  std::vector<SliceId> open;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::kThread) continue;
    open.clear();
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      if (!takes_part_in_nesting(trace.kind(id), options.python_frames)) continue;
      while (!open.empty() && (trace.start_ns(id) >= trace.end_ns(open.back()) ||
                               trace.end_ns(id) > trace.end_ns(open.back())))
        open.pop_back();
      nesting.depth[i] = static_cast<std::uint32_t>(open.size());
      if (!open.empty()) {
        nesting.parent[i] = open.back();
        nesting.self_ns[raw(open.back())] -= trace.dur_ns(id);
      }
      open.push_back(id);
    }
  }
  return nesting;
}

}  // namespace lanescope::analysis
