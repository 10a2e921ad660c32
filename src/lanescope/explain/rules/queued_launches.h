// Launch calls and how much launched work waited when they were made. In slow_launches.cpp.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Calls that launch one kernel each, in steady steps, by place in the trace; first uses of a kernel
// left out. With the work that was launched and had not begun when the call was made (of the main
// device, all streams together).
struct QueuedLaunch {
  SliceId call = kNone<SliceId>;
  std::uint64_t queued = 0;
};
std::vector<QueuedLaunch> queued_launches(const Facts& facts);
// So much waiting work that a queue of the driver (1024 launches) may be full.
inline constexpr std::uint64_t kFullQueue = 1000;

inline constexpr std::int64_t kUsualLaunchNs = 8'000;  // with the recorder's own part: 3 to 8 us

}  // namespace lanescope::explain::rules
