// How a trace says that it was simulated, not recorded.
#pragma once
#include <string_view>

namespace lanescope {

// A top-level entry of the file: a text such as "lanescope whatif: remove-sync; cpu 2x".
inline constexpr std::string_view kSimulatedBy = "simulatedBy";

}  // namespace lanescope
