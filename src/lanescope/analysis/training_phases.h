// Which part of a training loop each slice belongs to: loading, backward, optimizer, zero_grad.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// docs/definitions.md#training-phases. kOther: forward, loss, logging and whatever no range names.
enum class Phase : std::uint8_t { kOther, kLoader, kBackward, kOptimizer, kZeroGrad };

// One entry a slice. CPU slices: the outermost range that names a phase, themselves included.
// Device slices: the phase of their launch call. O(n). Any thread.
std::vector<Phase> compute_training_phases(const Trace& trace, const LaunchLinks& links,
                                           const SliceNesting& nesting);

}  // namespace lanescope::analysis
