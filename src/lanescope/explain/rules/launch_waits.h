// Launches that wait for their kernel.
#pragma once
#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// At least 19 of 20 kernels of 10 us or more end before their launch call returns, and there are 10 or
// more of them. What launches cost is unknown then. O(work).
bool launches_block(const Facts& facts);

}  // namespace lanescope::explain::rules
