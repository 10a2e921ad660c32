// The reference of compute_key_averages(). Private to key_averages.cpp and tests.
#pragma once
#include "lanescope/analysis/key_averages.h"

namespace lanescope::analysis {

// The same from the list of all events (torch_events.h), also where compute_key_averages() has a
// quicker way.
Result<KeyAverages> key_averages_of_list(const Trace& trace, const KeyAveragesOptions& options);

}  // namespace lanescope::analysis
