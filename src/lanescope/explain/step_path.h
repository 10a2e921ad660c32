// Where every nanosecond of the steady steps was decided: the critical path of the recording.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/simulate/replay.h"

namespace lanescope::explain {

// True: the GPU's work, `busy_ns`, decides a step without the profiler. The step is an estimate,
// and half of such estimates are off by 15 % or more (docs/measurements/whatif.md). So a step with
// GPU work for 85 % or more may be nothing but GPU work.
inline bool is_gpu_bound(std::int64_t busy_ns, std::int64_t step_ns) {
  return static_cast<double>(busy_ns) >= 0.85 * static_cast<double>(step_ns);
}

// Pieces in order of time. Together they are as long as the steady steps, or a little shorter if
// the replay of the recording is. If only recording makes the GPU wait (is_gpu_bound()), they are
// the GPU's work.
struct StepPath {
  std::vector<simulate::PathPiece> pieces;
  TrackId thread = kNone<TrackId>;  // of CPU pieces without an event
  std::int64_t total_ns = 0;
};

// While the main thread waits for its batch, the path may lead through the thread that pins memory, which has no events then.
// Such pieces without an event become the DataLoader's where `thread`, the main one, is in its range. Returns all pieces, in order.
std::vector<simulate::PathPiece> give_to_loader(const Facts& facts, TrackId thread,
                                                const std::vector<simulate::PathPiece>& pieces);

// With GPU work: the chain of dependencies that decided (docs/definitions/whatif.md#critical-path).
// Without: what the thread that runs the steps did. Nothing: the trace has neither the launch calls
// of its GPU work nor a thread, or no whole step. O(n log n).
std::optional<StepPath> find_step_path(const Facts& facts);

}  // namespace lanescope::explain
