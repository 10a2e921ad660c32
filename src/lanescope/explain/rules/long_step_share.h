// What a finding has to do with the long step (StepSelection::long_step).
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// For a finding that may be the reason for the long step: adds how much of that step's time on the
// main device lies in the given windows. Of CPU windows only the time counts in which the device
// was idle; device windows count in full. Without a long step, adds nothing.
void explain_long_step(const Facts& facts, std::vector<analysis::Window> cpu_windows,
                       std::vector<analysis::Window> device_windows, Finding& finding);

// The part of a time outside of the long step on the main device; without a long step, all of it.
std::int64_t outside_long_step(const Facts& facts, std::int64_t start_ns, std::int64_t end_ns);

}  // namespace lanescope::explain::rules
