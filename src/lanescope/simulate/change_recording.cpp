#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "lanescope/simulate/change_kinds.h"
#include "lanescope/simulate/recording_cost.h"

namespace lanescope::simulate {
namespace {

// At most `cost_ns`, and at most that share of the edge. Returns what it took.
std::int64_t shorten(Edge& edge, double cost_ns, double most_share) {
  const auto taken_ns = static_cast<std::int64_t>(
      std::min(cost_ns, static_cast<double>(edge.weight_ns) * most_share));
  edge.weight_ns -= taken_ns;
  edge.unexplained_ns = std::min(edge.unexplained_ns, edge.weight_ns);
  return taken_ns;
}

// A graph's first node starts when the call has prepared all of them.
void take_out_of_graph_launches(const StepGraph& graph, std::span<Edge> edges, double share) {
  const double launch_share = kCostOfGraphLaunch.share * std::min(1.0, share);
  for (const GraphLaunch& launch : graph.graph_launches) {
    const double cost_ns =
        kCostOfGraphLaunch.most_ns * share * static_cast<double>(launch.nodes.size());
    std::int64_t taken_ns = 0;
    for (const std::uint32_t edge : launch.own_edges)
      taken_ns += shorten(edges[edge], cost_ns - static_cast<double>(taken_ns), launch_share);
    for (const std::uint32_t node : launch.nodes) {
      const GpuWork& work = graph.works[node];
      if (work.launch_edge != kNoIndex)
        shorten(edges[work.launch_edge], static_cast<double>(taken_ns), launch_share);
      if (work.work_edge != kNoIndex)
        shorten(edges[work.work_edge], kCostOfNodeOnGpu.most_ns * share, kCostOfNodeOnGpu.share);
    }
  }
}

}  // namespace

void take_out_recording(const StepGraph& graph, std::span<Edge> edges, double share) {
  const RecordingCosts costs(graph, share);
  for (Edge& edge : edges) {
    if (!RecordingCosts::has_cost(edge)) continue;
    edge.weight_ns = costs.weight_without(edge);
    edge.unexplained_ns = std::min(edge.unexplained_ns, edge.weight_ns);
  }
  if (has_recording_cost(graph)) take_out_of_graph_launches(graph, edges, share);
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
