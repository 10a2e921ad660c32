// Which part of a trace gives the same answer about one step as all of it does: for questions about one step of an indexed
// trace. Defined in docs/definitions/reading.md#one-step-alone.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/view/step_windows.h"

namespace lanescope::view {

// One entry per step. Unknown: the whole trace is needed. O(n log n).
std::vector<StepNeeds> step_needs(const explain::Facts& facts);

}  // namespace lanescope::view
