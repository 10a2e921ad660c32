// What a recording cost, and left out to keep its budget, in one line each.
#pragma once
#include <string>

#include "lanescope/analysis/thinning.h"

namespace lanescope::report {

// "operators are missing for 12.300s of the recording (in 4 pauses); ...": what is missing, and
// what that means for the numbers. No newline.
std::string thinning_text(const analysis::Thinning& thinning);
// "recording took 0.9 % of the time; its budget was 1 %", and what a budget could not limit. No
// newline.
std::string recording_cost_text(const analysis::RecordingCost& cost);

}  // namespace lanescope::report
