// Runs work that must not disturb others on the machine.
#pragma once
#include <cstdint>

namespace lanescope::cli {

inline constexpr std::uint64_t kBackgroundMemoryBytes = 200u << 20;

// From now on, this process has the lowest priority for CPU and disk, fails instead of using more
// than kBackgroundMemoryBytes, and is the first to be killed when memory is short. Skips what the
// system does not allow. Closes all descriptors except the standard ones. Ignores SIGPIPE, because
// the process that started it may be gone.
void go_into_background();

}  // namespace lanescope::cli
