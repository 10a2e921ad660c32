// Shares as people type them: "1%", "0.5%", "2.5 %".
#pragma once
#include <optional>
#include <string_view>

namespace lanescope {

// A plain decimal number and %, with or without one blank between; 0.1 to 50. Returns a ratio: 1 %
// is 0.01. Anything else: nothing. Any thread; O(length).
std::optional<double> parse_percent(std::string_view text);

}  // namespace lanescope
