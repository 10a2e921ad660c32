// `lanescope ranks hang` as text and JSON.
#pragma once
#include <string>

#include "lanescope/ranks/hang.h"

namespace lanescope::report {

// What was read, the findings with the likeliest cause first, and a line a rank (at most 32).
std::string ranks_hang_text(const ranks::HangReport& report);
// docs/formats/json_output.md, command "ranks hang".
std::string ranks_hang_json(const ranks::HangReport& report);

}  // namespace lanescope::report
