// The Python line that a slice comes from, for those who have no Facts.
#pragma once
#include <span>
#include <string>

#include "lanescope/model/trace.h"

namespace lanescope::explain::rules {

// As python_line() of evidence.h. `outward`: the slice itself, its parent and so on. Not empty.
std::string python_line(const Trace& trace, std::span<const SliceId> outward);

}  // namespace lanescope::explain::rules
