// The stacks of one track: which slices lie in which, added up by name.
#pragma once
#include <vector>

#include "lanescope/analysis/python_flame.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Weights are nanoseconds; self is the duration minus that of the slices directly inside. Slices
// that overlap without nesting are stacks of their own (model/nested_rows.h), so self is never
// negative. A slice deeper than 1,024 frames counts to the frame that it lies in.
// docs/definitions/python_samples.md#track-stacks. Any thread. O(n log n).
std::vector<FlameNode> compute_track_flame(const Trace& trace, const Track& track);

}  // namespace lanescope::analysis
