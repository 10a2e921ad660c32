// The ending of a recording's file.
#pragma once
#include <string_view>

namespace lanescope::spool {

inline constexpr std::string_view kEnding = ".lspool";

}  // namespace lanescope::spool
