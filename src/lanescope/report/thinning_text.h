// What a recording left out to keep its budget, in one line.
#pragma once
#include <string>

#include "lanescope/analysis/thinning.h"

namespace lanescope::report {

// "operators are missing for 12.300s of the recording (in 4 pauses); ...": what is missing, and
// what that means for the numbers. No newline.
std::string thinning_text(const analysis::Thinning& thinning);

}  // namespace lanescope::report
