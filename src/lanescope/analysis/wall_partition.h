// Divides the wall time of a step on a device into parts whose sum is exactly the wall time.
#pragma once
#include <cstdint>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/steps.h"

namespace lanescope::analysis {

// Nanoseconds. compute + exposed_communication + exposed_copy + idle == wall, always.
// docs/definitions/wall.md#wall-partition.
struct WallPartition {
  std::int64_t wall_ns = 0;
  std::int64_t compute_ns = 0;                // union of compute kernels
  std::int64_t exposed_communication_ns = 0;  // communication while nothing computed
  std::int64_t exposed_copy_ns = 0;  // copies and memsets while nothing computed or communicated
  std::int64_t idle_ns = 0;          // nothing ran on any stream of the device
  std::int64_t busy_ns() const { return wall_ns - idle_ns; }
  WallPartition& operator+=(const WallPartition& other);
};

// O(log n).
WallPartition compute_wall_partition(const DeviceTimeline& timeline, const Window& window);

}  // namespace lanescope::analysis
