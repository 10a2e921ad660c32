// Which of three limits bounds the step. host-bound, gpu-bound and communication-bound all ask
// here, so that at most one of them says that it is the limit.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

enum class Bound : std::uint8_t {
  kNone,
  kHost,           // the GPU waits for the CPU: is_host_bound()
  kCompute,        // busy for more than 90 % of the wall, computing for 75 % or more
  kCommunication,  // exposed communication above 15 %, and the GPU is not idle for twice as long
};

// Of those that hold, the one with the most time of the steady wall. Needs a main device. O(n).
Bound find_bound(const Facts& facts);

// The steady wall without a gap at the edge of the recording, of which nobody knows what ran in it.
analysis::WallPartition wall_without_edge_gap(const Facts& facts);

inline constexpr double kBoundingCommunicationRatio = 0.15;

}  // namespace lanescope::explain::rules
