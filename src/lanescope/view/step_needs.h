// Finds how much of a trace must be read to answer questions about one step. The answers are the same as from the whole trace.
// Used for indexed traces. Defined in docs/definitions/reading.md#one-step-alone.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/view/step_windows.h"

namespace lanescope::view {

// One entry per step. Unknown: the whole trace is needed. O(n log n).
std::vector<StepNeeds> step_needs(const explain::Facts& facts);

}  // namespace lanescope::view
