#include "lanescope/analysis/wall_partition.h"

namespace lanescope::analysis {

WallPartition& WallPartition::operator+=(const WallPartition& other) {
  wall_ns += other.wall_ns;
  compute_ns += other.compute_ns;
  exposed_communication_ns += other.exposed_communication_ns;
  exposed_copy_ns += other.exposed_copy_ns;
  idle_ns += other.idle_ns;
  return *this;
}

WallPartition compute_wall_partition(const DeviceTimeline& timeline, const Window& window) {
  WallPartition part;
  if (window.end_ns <= window.start_ns) return part;
  const auto times = timeline.time_within(window.start_ns, window.end_ns);
  part.wall_ns = window.length_ns();
  part.compute_ns = times[static_cast<std::size_t>(WorkClass::kCompute)];
  part.exposed_communication_ns = times[static_cast<std::size_t>(WorkClass::kCommunication)];
  part.exposed_copy_ns = times[static_cast<std::size_t>(WorkClass::kCopy)];
  part.idle_ns =
      part.wall_ns - part.compute_ns - part.exposed_communication_ns - part.exposed_copy_ns;
  return part;
}

}  // namespace lanescope::analysis
