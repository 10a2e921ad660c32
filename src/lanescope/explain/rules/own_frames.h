// The Python function of the program around a slice.
#pragma once
#include <string>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// "train.py(9): main": the frame whose line python_line() gives, as the recorder named it. Its
// number is the function's first line, not that of the call. Empty without frames. O(slices of the
// thread).
std::string python_function(const Facts& facts, SliceId slice);

}  // namespace lanescope::explain::rules
