// Which part of a training loop each slice belongs to: loading, backward, optimizer, zero_grad.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// docs/definitions/steps.md#training-phases. kOther: forward, loss, logging and everything without
// such a range.
enum class Phase : std::uint8_t { kOther, kLoader, kBackward, kOptimizer, kZeroGrad };

// One entry per slice. CPU slices: the outermost range with a phase, around the slice or the slice
// itself. Device slices: the phase of their launch call. O(n). Any thread.
std::vector<Phase> compute_training_phases(const Trace& trace, const LaunchLinks& links,
                                           const SliceNesting& nesting);

}  // namespace lanescope::analysis
