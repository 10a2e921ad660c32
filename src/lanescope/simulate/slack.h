// Slack: how much longer something off the critical path may take before a step grows.
// docs/definitions/whatif.md#slack.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lanescope/simulate/replay.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

// Pieces of GPU work, or of a thread's own time, in steady steps. Nanoseconds; sums are of all steady steps.
struct SlackRow {
  TrackId track = kNone<TrackId>;  // of a thread or stream; kNone: a kernel or operator
  bool is_gpu = false;
  std::string name;              // of a kernel or operator
  std::int64_t critical_ns = 0;  // of pieces without slack
  std::int64_t time_ns = 0;      // of pieces with slack
  std::size_t pieces = 0;        // with slack
  std::int64_t least_ns = 0;     // the smallest slack of one piece
  std::int64_t median_ns = 0;    // the lower median; each piece counts once
};

// Those without slack are left out. Most time with slack first.
struct Slack {
  std::size_t steps = 0;
  std::vector<SlackRow> places, kernels, operators;
};

// By how much a point may come later before a steady step ends later; what no step waits for may come as late as the last
// steady step's end. `replay`: of these edges. One pass over the edges, from the last to the first.
std::vector<std::int64_t> latest_times(const StepGraph& graph, std::span<const Edge> edges,
                                       const Replay& replay);
// Of the graph's own edges. O(edges).
Slack slack_of(const StepGraph& graph, const Replay& replay);

}  // namespace lanescope::simulate
