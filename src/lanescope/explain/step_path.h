// Where every nanosecond of the steady steps was decided: the critical path of the recording.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/simulate/replay.h"

namespace lanescope::explain {

// Does the GPU's work decide a step without the profiler, of which it works `busy_ns`? The step is an
// estimate, and half of such estimates are 15 % or more off (docs/measurements/whatif.md): one of which
// the GPU works 85 % or more cannot be distinguished from one that is only GPU work.
inline bool is_gpu_bound(std::int64_t busy_ns, std::int64_t step_ns) {
  return static_cast<double>(busy_ns) >= 0.85 * static_cast<double>(step_ns);
}

// Pieces in order of time. Together they are as long as the steady steps, or a little shorter where
// the replay of the recording is. Where only recording makes the GPU wait (is_gpu_bound()), they
// are its work.
struct StepPath {
  std::vector<simulate::PathPiece> pieces;
  TrackId thread = kNone<TrackId>;  // of CPU pieces without an event
  std::int64_t total_ns = 0;
};

// With GPU work: the chain of dependencies that decided (docs/definitions/whatif.md#critical-path).
// Without: what the thread that runs the steps did. Nothing: the trace has neither the launch calls
// of its GPU work nor a thread, or no whole step. O(n log n).
std::optional<StepPath> find_step_path(const Facts& facts);

}  // namespace lanescope::explain
