// Whether a trace shows the calls of Python functions, and what to advise where it does not.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/model/trace.h"

namespace lanescope::explain {

bool has_python_frames(const Trace& trace);

// `there` when the trace has frames. Else to record with them, because of what they `tell` ("the
// Python frames tell ..."); when it was recorded with stacks, also why there may be none.
std::string advise_python_frames(const Trace& trace, std::string_view there, std::string_view tell);

}  // namespace lanescope::explain
