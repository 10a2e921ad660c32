// Tells Python frames of libraries from the program's own frames.
#pragma once
#include <string_view>

namespace lanescope::names {

// True: the Python frame is part of torch, an installed package or Python itself. O(length).
bool is_of_library(std::string_view frame);

}  // namespace lanescope::names
