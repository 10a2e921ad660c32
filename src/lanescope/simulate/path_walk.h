// Walks the critical path of a replay from its end to its start. Private to simulate/.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lanescope/simulate/replay.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

// Also says where on the path it lies.
struct WalkedPiece : PathPiece {
  EdgeKind edge = EdgeKind::kFixed;
  std::uint32_t point = 0;  // at which the edge ends
  // The edge of no length through which the path goes on, if that leads to another thread or stream. kFixed: none.
  EdgeKind left_by = EdgeKind::kFixed;
};

// Edges that lead from one thread or stream to another, or from one piece of GPU work to the next.
inline bool crosses(EdgeKind kind) {
  return kind == EdgeKind::kHandOver || kind == EdgeKind::kLaunch || kind == EdgeKind::kStream ||
         kind == EdgeKind::kStreamWait || kind == EdgeKind::kHostWait || kind == EdgeKind::kQueue;
}

inline PathKind path_kind_of(const StepGraph& graph, const Edge& edge) {
  const Trace& trace = *graph.trace;
  switch (edge.kind) {
    case EdgeKind::kFixed:
      return PathKind::kUnexplained;
    case EdgeKind::kData:
      return PathKind::kData;
    case EdgeKind::kHost:
    case EdgeKind::kOtherHost:
    case EdgeKind::kHandOver:
      if (edge.in_loader) return PathKind::kData;
      return edge.owner != kNone<SliceId> && is_api_call(trace.kind(edge.owner)) ? PathKind::kCall
                                                                                 : PathKind::kHost;
    case EdgeKind::kLaunch:
    case EdgeKind::kStream:
    case EdgeKind::kStreamWait:
    case EdgeKind::kHostWait:
    case EdgeKind::kQueue:
      return PathKind::kDelay;
    case EdgeKind::kWork:
      break;
  }
  return trace.kind(edge.owner) == CategoryKind::kGpuMemcpy ? PathKind::kCopy : PathKind::kCompute;
}

// Gives the pieces of the path to `take`, the last one first.
template <typename Take>
class PathWalk {
 public:
  PathWalk(const StepGraph& graph, std::span<const Edge> edges, const Replay& replay, Take take)
      : graph_(graph), edges_(edges), replay_(replay), take_(std::move(take)) {
    for (const GpuWork& work : graph.works)
      if (work.work == analysis::WorkClass::kCommunication && work.work_edge != kNoIndex)
        communication_.push_back(work.work_edge);
    std::sort(communication_.begin(), communication_.end());
  }

  void run() {
    // Neighbouring steady steps are walked as one.
    for (std::size_t last = graph_.steps.size(); last-- > 0;) {
      if (!graph_.steps[last].steady) continue;
      std::size_t first = last;
      while (first > 0 && graph_.steps[first - 1].steady) --first;
      walk(replay_.step_ends[last], replay_.steps[first].start_ns, replay_.steps[last].end_ns);
      last = first;
    }
  }

 private:
  void walk(std::uint32_t point, std::int64_t from_ns, std::int64_t to_ns) {
    std::int64_t now = to_ns;
    if (replay_.time_ns[point] < now) {  // the boundary lies after its point
      const std::int64_t before = std::max(from_ns, replay_.time_ns[point]);
      spend({{before, now, PathKind::kHost, kNone<SliceId>}, EdgeKind::kHost, point});
      now = before;
    }
    while (now > from_ns) {
      const std::uint32_t binding = replay_.binding[point];
      if (binding == kNoIndex) {
        spend({{from_ns, now, PathKind::kUnexplained, kNone<SliceId>}, EdgeKind::kFixed, point});
        return;
      }
      const Edge& edge = edges_[binding];
      const std::int64_t before = std::max(from_ns, std::min(now, replay_.time_ns[edge.from]));
      if (before == now && crosses(edge.kind)) crossed_by_ = edge.kind;
      spend(edge, binding, point, before, now);
      now = before;
      point = edge.from;
    }
  }

  void spend(const Edge& edge, std::uint32_t index, std::uint32_t point, std::int64_t from_ns,
             std::int64_t to_ns) {
    PathKind kind = path_kind_of(graph_, edge);
    if (kind == PathKind::kCompute &&
        std::binary_search(communication_.begin(), communication_.end(), index))
      kind = PathKind::kCommunication;
    // What is longer than usual comes after the usual time.
    const std::int64_t usual_ns =
        to_ns - std::clamp<std::int64_t>(edge.unexplained_ns, 0, to_ns - from_ns);
    spend({{usual_ns, to_ns, PathKind::kUnexplained, edge.owner}, edge.kind, point});
    spend({{from_ns, usual_ns, kind, edge.owner}, edge.kind, point});
  }

  void spend(WalkedPiece piece) {
    if (piece.end_ns <= piece.start_ns) return;
    piece.left_by = std::exchange(crossed_by_, EdgeKind::kFixed);
    take_(piece);
  }

  const StepGraph& graph_;
  std::span<const Edge> edges_;
  const Replay& replay_;
  std::vector<std::uint32_t> communication_;  // edges
  EdgeKind crossed_by_ = EdgeKind::kFixed;
  Take take_;
};

}  // namespace lanescope::simulate
