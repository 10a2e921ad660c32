// How much time recording costs a thread.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "lanescope/model/simulated_by.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

// The cost of recording the begin or the end of an event: most_ns, but at most `share` of the time until the
// thread's next begin or end. Fitted to programs that were also timed without a profiler, in the same process;
// docs/measurements/whatif.md has the fit and its error.
struct RecordingCost {
  double most_ns = 0, share = 0;
};
inline constexpr RecordingCost kCostOfAny{7'500, 0.5};
// One entry per Moment, in the order of that enum.
inline constexpr RecordingCost kCostInLanescope[] = {
    {10'000, 0.5}, {1'500, 0.5}, {1'500, 0.5}, {10'000, 0.5}};
inline constexpr RecordingCost kCostInOthers[] = {
    {20'000, 0.6}, {5'000, 0.3}, {5'000, 0.9}, {20'000, 0.5}};
// The cost per node of a CUDA graph: first in the launch call, then in the node's work on the GPU. `share` is a share of the
// call, or of the work. docs/measurements/whatif.md says what the numbers were fitted to.
inline constexpr RecordingCost kCostOfGraphLaunch{2'000, 0.9};
inline constexpr RecordingCost kCostOfNodeOnGpu{300, 0.25};
// A prediction is a range that holds true for most programs. One end of it assumes this many times the estimated cost.
inline constexpr double kMostRecording = 1.6;
// That end takes at most this share of the time until the next begin or end, because the program needs some of that time.
inline constexpr double kMostShare = 0.8;

// The cost of one begin or end, in ns. `until_next_ns`: the time until the next one, at least 0.
inline double recording_cost_ns(const RecordingCost& cost, double until_next_ns) {
  return std::min(cost.most_ns, until_next_ns * cost.share);
}

// False: a simulated trace, whose prediction took the cost out.
inline bool has_recording_cost(const StepGraph& graph) {
  return !graph.trace->metadata_json(kSimulatedBy);
}

// What recording cost the edges of a graph. `times`: multiplies the estimated cost. 1: the estimate itself; other values give the
// ends of the range. The cost of CUDA graph launches is not part of it.
class RecordingCosts {
 public:
  RecordingCosts(const StepGraph& graph, double times) {
    if (!has_recording_cost(graph)) return;
    for (std::size_t kind = 0; kind < std::size(costs_); ++kind) {
      const RecordingCost& cost =
          graph.is_by_lanescope ? kCostInLanescope[kind] : kCostInOthers[kind];
      costs_[kind] = {.most_ns = cost.most_ns * times,
                      .share = std::min(cost.share * times, std::max(cost.share, kMostShare))};
    }
  }
  // True: a thread's own time, which has a begin or an end of an event in it.
  static bool has_cost(const Edge& edge) {
    return edge.kind == EdgeKind::kHost || edge.kind == EdgeKind::kHandOver;
  }
  std::int64_t weight_without(const Edge& edge) const {
    if (!has_cost(edge)) return edge.weight_ns;
    const double cost_ns = recording_cost_ns(costs_[static_cast<std::size_t>(edge.after)],
                                             static_cast<double>(edge.weight_ns));
    return edge.weight_ns - std::min(edge.weight_ns, static_cast<std::int64_t>(cost_ns));
  }

 private:
  RecordingCost costs_[std::size(kCostInLanescope)] = {};  // by Moment
};

}  // namespace lanescope::simulate
