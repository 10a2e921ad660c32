// Which of four limits bounds the step. host-bound, gpu-bound, copy-bound and communication-bound
// all ask here, so that at most one of them says that it is the limit.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

enum class Bound : std::uint8_t {
  kNone,
  kHost,     // the GPU waits for the CPU: is_host_bound()
  kCompute,  // busy for more than 90 % of the wall, computing for 75 % or more
  // Copies between CPU and GPU, with the waits in their calls, above 30 %, and longer than the
  // compute, the exposed communication, and the rest of the waiting for the CPU.
  kCopy,
  // Exposed communication above 15 %; the GPU is not idle for twice as long and does not wait
  // longer for the CPU. Waits for collectives that Gloo or MPI run on the CPU count with it (gloo_waits.h).
  kCommunication,
};

// If several hold, the one with the most time of the steady wall. Needs a main device. O(n).
Bound find_bound(const Facts& facts);

// The steady wall without the gap at the edge of the recording, in which unrecorded work may run.
analysis::WallPartition wall_without_edge_gap(const Facts& facts);

inline constexpr double kBoundingCopyRatio = 0.3;
inline constexpr double kBoundingCommunicationRatio = 0.15;

}  // namespace lanescope::explain::rules
