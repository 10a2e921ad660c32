#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "lanescope/simulate/change_kinds.h"
#include "lanescope/simulate/recording_cost.h"

namespace lanescope::simulate {

void take_out_recording(const StepGraph& graph, std::span<Edge> edges, double share) {
  for (Edge& edge : edges) {
    if (edge.kind != EdgeKind::kHost && edge.kind != EdgeKind::kHandOver) continue;
    const double cost = recording_cost_ns(graph, edge, share);
    edge.weight_ns -= std::min(edge.weight_ns, static_cast<std::int64_t>(cost));
    edge.unexplained_ns = std::min(edge.unexplained_ns, edge.weight_ns);
  }
}

void remove_profiler(ChangedGraph& changed) {
  if (!changed.change.number) {
    take_out_recording(changed.graph, changed.edges);
    changed.applied.count = changed.edges.size();
    changed.applied.notes.push_back(
        "what recording cost is estimated from the number of events; of the programs that were "
        "also timed without a profiler, half came within 15 % and four of five within 35 % "
        "(docs/measurements/whatif.md)");
    return;
  }
  const auto half_ns = static_cast<std::int64_t>(*changed.change.number * 500);
  for (Edge& edge : changed.edges) {
    if (!is_own_time(edge)) continue;
    edge.weight_ns = std::max<std::int64_t>(edge.weight_ns - half_ns, 0);
    ++changed.applied.count;
  }
  changed.applied.notes.push_back(fmt::format(
      "each recorded event is taken to cost the program {:.1f} us", *changed.change.number));
}

}  // namespace lanescope::simulate
