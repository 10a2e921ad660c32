// A graph while one change is made to it, and what several kinds of changes do to its edges.
#pragma once
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/model/trace.h"
#include "lanescope/simulate/changes.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

struct ChangedGraph {
  const StepGraph& graph;
  const Trace& trace;
  const analysis::SliceNesting& nesting;
  const Change& change;
  std::vector<Edge>& edges;  // a copy of graph.edges
  Applied applied;
};

// A thread's own time outside the loader, or the way from one thread to another.
inline bool is_own_time(const Edge& edge) {
  return (edge.kind == EdgeKind::kHost && !edge.in_loader) || edge.kind == EdgeKind::kHandOver;
}
inline bool is_loader_time(const Edge& edge) {
  return edge.kind == EdgeKind::kData || edge.in_loader;
}
inline void scale(Edge& edge, double by) {
  edge.weight_ns = static_cast<std::int64_t>(static_cast<double>(edge.weight_ns) * by);
  edge.unexplained_ns = static_cast<std::int64_t>(static_cast<double>(edge.unexplained_ns) * by);
}
inline void forget_slack(Edge& edge) {
  edge.weight_ns -= edge.unexplained_ns;
  edge.unexplained_ns = 0;
}
inline void take_no_time(Edge& edge) { edge.weight_ns = edge.unexplained_ns = 0; }

// From now on the CPU spends no time in these calls (raw SliceIds).
inline void take_no_cpu_time(ChangedGraph& changed, const std::unordered_set<std::uint32_t>& gone) {
  for (Edge& edge : changed.edges)
    if (edge.kind == EdgeKind::kHost && edge.owner != kNone<SliceId> &&
        gone.contains(raw(edge.owner)))
      edge.weight_ns = 0;
}

}  // namespace lanescope::simulate
