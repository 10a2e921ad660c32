// Whether a trace has Python frames, and how to record them if not.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/model/trace.h"

namespace lanescope::explain {

bool has_python_frames(const Trace& trace);

// With frames: `there`. Without: advice to record them because "the Python frames tell ..."
// (`tell`); for a trace recorded with stacks, also why it may have none.
std::string advise_python_frames(const Trace& trace, std::string_view there, std::string_view tell);

}  // namespace lanescope::explain
