// What recording costs a thread.
#pragma once
#include <algorithm>
#include <cstdint>

#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

// The cost of recording the begin or the end of an event: most_ns, but at most `share` of the time until the
// thread's next begin or end. Fitted to programs that were also timed without a profiler, in the same process;
// docs/measurements/whatif.md has the fit and its error.
struct RecordingCost {
  double most_ns = 0, share = 0;
};
inline constexpr RecordingCost kCostOfAny{7'500, 0.5};
// By Moment.
inline constexpr RecordingCost kCostInLanescope[] = {
    {10'000, 0.5}, {1'500, 0.5}, {1'500, 0.5}, {10'000, 0.5}};
inline constexpr RecordingCost kCostInOthers[] = {
    {20'000, 0.6}, {5'000, 0.3}, {5'000, 0.9}, {20'000, 0.5}};
// The cost per node of a CUDA graph: in the launch call (at most so long, and at most this share of the call), and in the
// node's work on the GPU. docs/measurements/whatif.md has what they were fitted to.
inline constexpr RecordingCost kCostOfGraphLaunch{2'000, 0.9};
inline constexpr RecordingCost kCostOfNodeOnGpu{300, 0.25};
// A prediction has a range that holds most programs. Its far end assumes this many times the estimated cost.
inline constexpr double kMostRecording = 1.6;
// The far end takes at most this share of the time until the next begin or end: some of it is the program's.
inline constexpr double kMostShare = 0.8;

// The cost of one such moment, in ns. `until_next_ns`: at least 0.
inline double recording_cost_ns(const RecordingCost& cost, double until_next_ns) {
  return std::min(cost.most_ns, until_next_ns * cost.share);
}

// `times`: 1 for the estimate, else how many times the estimate (an end of the range).
inline double recording_cost_ns(const StepGraph& graph, const Edge& edge, double times) {
  const auto kind = static_cast<std::size_t>(edge.after);
  const RecordingCost cost = graph.is_by_lanescope ? kCostInLanescope[kind] : kCostInOthers[kind];
  return recording_cost_ns(
      {.most_ns = cost.most_ns * times,
       .share = std::min(cost.share * times, std::max(cost.share, kMostShare))},
      static_cast<double>(edge.weight_ns));
}

// What is left of an edge without that cost, apart from launches of CUDA graphs.
inline std::int64_t weight_without_recording_ns(const StepGraph& graph, const Edge& edge,
                                                double times) {
  if (edge.kind != EdgeKind::kHost && edge.kind != EdgeKind::kHandOver) return edge.weight_ns;
  const auto cost_ns = static_cast<std::int64_t>(recording_cost_ns(graph, edge, times));
  return edge.weight_ns - std::min(edge.weight_ns, cost_ns);
}

}  // namespace lanescope::simulate
