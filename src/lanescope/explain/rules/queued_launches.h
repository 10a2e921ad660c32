// Launch calls, and how much launched work was waiting when each was made. In slow_launches.cpp.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// A call in a steady step that launches one kernel; first uses of a kernel are left out. `queued`:
// work that was launched but had not begun when the call was made (on the main device, all streams
// together). Sorted by place in the trace.
struct QueuedLaunch {
  SliceId call = kNone<SliceId>;
  std::uint64_t queued = 0;
};
const std::vector<QueuedLaunch>& queued_launches(const Facts& facts);
// With this much waiting work, a launch queue of the driver (1024 launches) may be full.
inline constexpr std::uint64_t kFullQueue = 1000;

// What to do about single launch calls that take long, though their kernels had run before.
inline constexpr char kKeepOffThisCore[] =
    "See what holds the thread up: other threads or programs on its core, or in CUDA";

inline constexpr std::int64_t kUsualLaunchNs = 8'000;  // with the recorder's own part: 3 to 8 us

}  // namespace lanescope::explain::rules
