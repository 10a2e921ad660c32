// Work that must not disturb anybody else on the machine.
#pragma once
#include <cstdint>

namespace lanescope::cli {

inline constexpr std::uint64_t kBackgroundMemoryBytes = 200u << 20;

// From here on this process has the lowest priority for the CPU and the disk, fails rather than use
// more than kBackgroundMemoryBytes, and is the first to be ended when memory is short. What the
// system does not allow is left out. SIGPIPE is ignored: who started it may be gone.
void go_into_background();

}  // namespace lanescope::cli
