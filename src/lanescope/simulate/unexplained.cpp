#include "lanescope/simulate/unexplained.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/simulate/path_walk.h"

namespace lanescope::simulate {
namespace {

bool is_of_graph(const StepGraph& graph, const GpuWork& work) {
  return work.launch != kNone<SliceId> &&
         graph.trace->api_call(work.launch).does(api_effect::kLaunchesGraph);
}

NotExplained kind_of_work(const StepGraph& graph, const GpuWork& work) {
  if (work.work == analysis::WorkClass::kCommunication) return NotExplained::kCollective;
  if (work.launch == kNone<SliceId>) return NotExplained::kNoLaunch;
  const bool follows_node =
      work.previous != kNoIndex && is_of_graph(graph, graph.works[work.previous]);
  return is_of_graph(graph, work) || follows_node ? NotExplained::kGraphNode
                                                  : NotExplained::kLateWork;
}

}  // namespace

const char* not_explained_name(NotExplained kind) {
  constexpr const char* kNames[] = {"collective", "graph_node", "no_launch",
                                    "late_work",  "late_call",  "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<UnexplainedTime> unexplained_times(const StepGraph& graph, const Replay& recorded) {
  constexpr std::size_t kKinds = 6;
  std::vector<std::uint32_t> started_at(graph.time_ns.size(), kNoIndex);  // works
  for (std::uint32_t i = 0; i < graph.works.size(); ++i) started_at[graph.works[i].start] = i;
  std::array<UnexplainedTime, kKinds> times;
  std::array<std::int64_t, kKinds> longest{};
  PathWalk(graph, graph.edges, recorded, [&](const WalkedPiece& piece) {
    if (piece.kind != PathKind::kUnexplained) return;
    const std::uint32_t work = started_at[piece.point];
    const NotExplained kind = work != kNoIndex ? kind_of_work(graph, graph.works[work])
                              : piece.edge == EdgeKind::kHostWait ? NotExplained::kLateCall
                                                                  : NotExplained::kOther;
    const auto at = static_cast<std::size_t>(kind);
    const std::int64_t time_ns = piece.end_ns - piece.start_ns;
    times[at].kind = kind;
    times[at].time_ns += time_ns;
    if (time_ns <= longest[at]) return;
    longest[at] = time_ns;
    times[at].longest = work != kNoIndex ? graph.works[work].slice : piece.slice;
  }).run();
  std::vector<UnexplainedTime> found;
  for (const UnexplainedTime& each : times)
    if (each.time_ns > 0) found.push_back(each);
  sort_rows(found.begin(), found.end(), [](const UnexplainedTime& a, const UnexplainedTime& b) {
    return a.time_ns > b.time_ns;
  });
  return found;
}

}  // namespace lanescope::simulate
