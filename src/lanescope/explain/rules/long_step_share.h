// What a finding has to do with the long step (StepSelection::long_step).
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// For a finding that may be why one step took so long: how much of its time on the main device lies
// in these times. Of the CPU's times counts what the device was idle in, of the device's all.
// Nothing is added when there is no such step.
void explain_long_step(const Facts& facts, std::vector<analysis::Window> cpu_windows,
                       std::vector<analysis::Window> device_windows, Finding& finding);

// Of a time the part that the long step did not hold the main device; all, when there is none.
std::int64_t outside_long_step(const Facts& facts, std::int64_t start_ns, std::int64_t end_ns);

}  // namespace lanescope::explain::rules
