#include "lanescope/simulate/replay.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/simulate/changes.h"
#include "lanescope/simulate/path_walk.h"
#include "lanescope/simulate/recording_cost.h"

namespace lanescope::simulate {
namespace {

// The point that decides a boundary, and its time.
std::pair<std::uint32_t, std::int64_t> decide(const StepGraph& graph, const Replay& replay,
                                              const std::vector<std::uint32_t>& latest,
                                              const Boundary& boundary) {
  std::uint32_t point = boundary.cpu_point;
  std::int64_t time = point == kNoIndex ? 0 : replay.time_ns[point] + boundary.after_ns;
  if (boundary.launched_count > 0) {
    const std::uint32_t end = graph.works[latest[boundary.launched_count - 1]].end;
    if (point == kNoIndex || replay.time_ns[end] > time) {
      point = end;
      time = replay.time_ns[end];
    }
  }
  return {point == kNoIndex ? 0 : point, time};
}

// A launch call in the trace is the first to know of its operator.
SliceId operator_of(const StepGraph& graph, SliceId slice) {
  if (slice == kNone<SliceId>) return slice;
  const SliceId op = graph.links->op_of[raw(slice)];
  return op == kNone<SliceId> ? slice : op;
}

// Work and calls count for the operator that launched or made them.
bool counts_for_operator(PathKind kind) {
  return kind != PathKind::kHost && kind != PathKind::kData && kind != PathKind::kDelay;
}

SliceId owner_of(const StepGraph& graph, const PathPiece& piece) {
  return counts_for_operator(piece.kind) ? operator_of(graph, piece.slice) : piece.slice;
}

// Time by kind and name of the owner, whose texts are read once each.
class OwnerTimes {
 public:
  explicit OwnerTimes(const Trace& trace) : trace_(trace) {}
  void add(PathKind kind, SliceId owner, std::int64_t time_ns) {
    const std::uint32_t name =
        owner == kNone<SliceId> ? kNoIndex : raw(trace_.slices().name[raw(owner)]);
    times_[std::uint64_t{name} * kPathKindCount + static_cast<std::uint64_t>(kind)] += time_ns;
  }
  // Longest first, ties by name.
  std::vector<PathOwner> owners() const {
    std::map<std::pair<PathKind, std::string>, std::int64_t> named;
    for (const auto& [key, time_ns] : times_)
      named[{static_cast<PathKind>(key % kPathKindCount), text_of(key / kPathKindCount)}] +=
          time_ns;
    std::vector<PathOwner> owners;
    owners.reserve(named.size());
    for (const auto& [key, time_ns] : named) owners.push_back({key.second, key.first, time_ns});
    sort_rows(owners.begin(), owners.end(), [](const PathOwner& a, const PathOwner& b) {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.name < b.name;
    });
    return owners;
  }

 private:
  std::string text_of(std::uint64_t name) const {
    const std::string_view text =
        name == kNoIndex ? "" : trace_.text(StringId{static_cast<std::uint32_t>(name)});
    if (name == kNoIndex || text.starts_with("ProfilerStep#")) return "code without events";
    return std::string(text);
  }

  const Trace& trace_;
  std::unordered_map<std::uint64_t, std::int64_t> times_;
};

// `weight_of`: of an edge.
template <typename WeightOf>
void replay_weighed(const StepGraph& graph, std::span<const Edge> edges, WeightOf weight_of,
                    Replay& result) {
  const std::size_t points = graph.time_ns.size();
  result.time_ns.resize(points);
  result.binding.resize(points);
  result.steps.clear();
  result.step_ends.clear();
  const std::int64_t origin = graph.time_ns[0];
  result.time_ns[0] = origin;
  result.binding[0] = kNoIndex;
  for (std::uint32_t point = 1; point < points; ++point) {
    std::int64_t time = origin;
    std::uint32_t binding = kNoIndex;
    for (std::uint32_t i = graph.first_edge[point]; i < graph.first_edge[point + 1]; ++i) {
      const Edge& edge = edges[i];
      const std::int64_t ready = result.time_ns[edge.from] + weight_of(edge);
      if (edge.dropped || (binding != kNoIndex && ready <= time)) continue;
      time = std::max(origin, ready);
      binding = i;
    }
    result.time_ns[point] = time;
    result.binding[point] = binding;
  }
  std::vector<std::uint32_t> latest = graph.by_launch;  // which ended last until here
  for (std::size_t i = 1; i < latest.size(); ++i)
    if (result.time_ns[graph.works[latest[i]].end] < result.time_ns[graph.works[latest[i - 1]].end])
      latest[i] = latest[i - 1];
  for (const StepBoundaries& step : graph.steps) {
    const auto [begin_point, begin] = decide(graph, result, latest, step.begin);
    const auto [end_point, end] = decide(graph, result, latest, step.end);
    result.steps.push_back({begin, std::max(begin, end)});
    result.step_ends.push_back(end_point);
  }
}

}  // namespace

Replay replay(const StepGraph& graph, std::span<const Edge> edges) {
  Replay result;
  replay_into(graph, edges, result);
  return result;
}

void replay_into(const StepGraph& graph, std::span<const Edge> edges, Replay& result) {
  replay_weighed(
      graph, edges, [](const Edge& edge) { return edge.weight_ns; }, result);
}

void replay_without_slack(const StepGraph& graph, Replay& result) {
  replay_weighed(
      graph, graph.edges, [](const Edge& edge) { return edge.weight_ns - edge.unexplained_ns; },
      result);
}

void replay_without_recording(const StepGraph& graph, double share, Replay& result) {
  if (graph.graph_launches.empty()) {
    const RecordingCosts costs(graph, share);
    replay_weighed(
        graph, graph.edges, [&](const Edge& edge) { return costs.weight_without(edge); }, result);
    return;
  }
  std::vector<Edge> edges = graph.edges;  // a graph's launch shares its cost among many edges
  take_out_recording(graph, edges, share);
  replay_into(graph, edges, result);
}

std::int64_t step_ns(const StepGraph& graph, const Replay& replay) {
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < graph.steps.size(); ++i)
    if (graph.steps[i].steady) lengths.push_back(replay.steps[i].length_ns());
  return analysis::median_of_steps(std::move(lengths));
}

std::int64_t steady_ns(const StepGraph& graph, const Replay& replay) {
  std::int64_t total_ns = 0;
  for (std::size_t first = 0; first < graph.steps.size(); ++first) {
    if (!graph.steps[first].steady) continue;
    std::size_t last = first;
    while (last + 1 < graph.steps.size() && graph.steps[last + 1].steady) ++last;
    total_ns += std::max<std::int64_t>(0, replay.steps[last].end_ns - replay.steps[first].start_ns);
    first = last;
  }
  return total_ns;
}

std::int64_t busy_ns_per_step(const StepGraph& graph, const Replay& replay) {
  analysis::IntervalUnion busy;
  for (const GpuWork& work : graph.works)
    if (work.on_main_device) busy.add(replay.time_ns[work.start], replay.time_ns[work.end]);
  busy.finish();
  std::int64_t total = 0, steps = 0;
  for (std::size_t i = 0; i < graph.steps.size(); ++i) {
    if (!graph.steps[i].steady) continue;
    total += busy.length_within_ns(replay.steps[i].start_ns, replay.steps[i].end_ns);
    ++steps;
  }
  return steps == 0 ? 0 : total / steps;
}

std::vector<PathPiece> critical_pieces(const StepGraph& graph, std::span<const Edge> edges,
                                       const Replay& replay) {
  std::vector<PathPiece> pieces;
  visit_critical_pieces(graph, edges, replay,
                        [&](const PathPiece& piece) { pieces.push_back(piece); });
  return pieces;
}

void visit_critical_pieces(const StepGraph& graph, std::span<const Edge> edges,
                           const Replay& replay,
                           const std::function<void(const PathPiece&)>& visit) {
  PathWalk(graph, edges, replay, [&](const WalkedPiece& piece) { visit(piece); }).run();
}

CriticalPath critical_path(const StepGraph& graph, std::span<const Edge> edges,
                           const Replay& replay, PathOwners named) {
  CriticalPath path;
  for (const StepBoundaries& step : graph.steps) path.steps += step.steady;
  OwnerTimes owners(*graph.trace);
  PathWalk(graph, edges, replay, [&](const WalkedPiece& piece) {
    const std::int64_t time = piece.end_ns - piece.start_ns;
    path.time_ns[static_cast<std::size_t>(piece.kind)] += time;
    path.total_ns += time;
    if (named == PathOwners::kNamed) owners.add(piece.kind, owner_of(graph, piece), time);
  }).run();
  path.owners = owners.owners();
  return path;
}

const char* path_kind_name(PathKind kind) {
  constexpr const char* kNames[] = {
      "python_and_operators", "calls", "kernels", "communication", "copies", "delays", "data",
      "unexplained"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* path_kind_text(PathKind kind) {
  constexpr const char* kTexts[] = {
      "Python and operators",   "launches and other calls", "kernels",    "communication", "copies",
      "launch and wait delays", "waiting for data",         "unexplained"};
  return kTexts[static_cast<std::size_t>(kind)];
}

Limit limit_of(const CriticalPath& path) {
  const std::pair<std::int64_t, Limit> parts[] = {
      {path.of(PathKind::kHost) + path.of(PathKind::kCall), Limit::kCpu},
      {path.of(PathKind::kCompute), Limit::kGpu},
      {path.of(PathKind::kCommunication), Limit::kCommunication},
      {path.of(PathKind::kCopy), Limit::kCopies},
      {path.of(PathKind::kData), Limit::kData},
      {path.of(PathKind::kDelay) + path.of(PathKind::kUnexplained), Limit::kDelays}};
  return std::max_element(std::begin(parts), std::end(parts),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

const char* limit_name(Limit limit) {
  constexpr const char* kNames[] = {"CPU", "GPU", "communication", "copies", "data", "delays"};
  return kNames[static_cast<std::size_t>(limit)];
}

}  // namespace lanescope::simulate
