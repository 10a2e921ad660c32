// When the loop waited for a batch.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// The stretches of waiting_for_batches() (cpu_waits.h): disjoint, in order of time.
std::vector<analysis::Window> batch_wait_windows(const Facts& facts);

}  // namespace lanescope::explain::rules
