// When work joined the queue of a device and when it left it.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Both in order of time. The depth of the queue at some time: how much work was launched until
// then, less how much of it had begun.
struct LaunchQueue {
  // The launch returned; or the work began, if that is earlier.
  std::vector<std::int64_t> launched_ns;
  std::vector<std::int64_t> began_ns;
};

// Only work whose launch is in the trace. O(n log n). Any thread.
LaunchQueue compute_launch_queue(const Trace& trace, const LaunchLinks& links,
                                 const DeviceTimeline& timeline);

}  // namespace lanescope::analysis
