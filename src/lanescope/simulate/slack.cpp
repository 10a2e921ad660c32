// Problem: what is not on the critical path, and how far is it from it?
//
// Idea: the replay goes forward and finds the earliest time of each point. From the ends of the steps
// backward, each point has a latest time: the least of (latest time of a point that waits for it - time
// between them). A piece of work may take longer by what is left between them.
//
// Cost: one pass over the edges.
//
// Example: a kernel of 30 us that begins at 10 us, in a step that ends at 100 us with the CPU: slack 60 us.
#include "lanescope/simulate/slack.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"

namespace lanescope::simulate {
namespace {

struct Gathered {
  SlackRow row;
  std::vector<std::int64_t> slacks;
  void add(std::int64_t time_ns, std::int64_t slack_ns) {
    if (slack_ns <= 0) {
      row.critical_ns += time_ns;
      return;
    }
    row.time_ns += time_ns;
    slacks.push_back(slack_ns);
  }
};

template <typename Groups>
std::vector<SlackRow> rows_of(Groups& groups) {
  std::vector<SlackRow> rows;
  for (auto& [key, group] : groups) {
    if (group.slacks.empty()) continue;
    group.row.pieces = group.slacks.size();
    group.row.least_ns = *std::min_element(group.slacks.begin(), group.slacks.end());
    group.row.median_ns = analysis::lower_median(std::move(group.slacks));
    rows.push_back(std::move(group.row));
  }
  sort_rows(rows.begin(), rows.end(),
            [](const SlackRow& a, const SlackRow& b) { return a.time_ns > b.time_ns; });
  return rows;
}

class SlackGroups {
 public:
  explicit SlackGroups(const StepGraph& graph) : graph_(graph), trace_(*graph.trace) {}

  void add(const Edge& edge, TrackId track, std::int64_t slack_ns) {
    const bool is_gpu = edge.kind == EdgeKind::kWork;
    Gathered& place = places_[raw(track)];
    place.row.track = track;
    place.row.is_gpu = is_gpu;
    place.add(edge.weight_ns, slack_ns);
    if (edge.owner == kNone<SliceId>) return;
    if (is_gpu) return add_named(kernels_, edge.owner, true, edge.weight_ns, slack_ns);
    const SliceId op =
        is_api_call(trace_.kind(edge.owner)) ? graph_.links->op_of[raw(edge.owner)] : edge.owner;
    if (op != kNone<SliceId> && trace_.kind(op) == CategoryKind::kCpuOp)
      add_named(operators_, op, false, edge.weight_ns, slack_ns);
  }

  Slack slack() {
    Slack slack;
    for (const StepBoundaries& step : graph_.steps) slack.steps += step.steady;
    slack.places = rows_of(places_);
    slack.kernels = rows_of(kernels_);
    slack.operators = rows_of(operators_);
    return slack;
  }

 private:
  using Named = std::map<std::uint32_t, Gathered>;  // by name

  void add_named(Named& groups, SliceId slice, bool is_gpu, std::int64_t time_ns,
                 std::int64_t slack_ns) {
    const auto [group, is_new] = groups.try_emplace(raw(trace_.slices().name[raw(slice)]));
    if (is_new) {
      group->second.row.name = std::string(trace_.name(slice));
      group->second.row.is_gpu = is_gpu;
    }
    group->second.add(time_ns, slack_ns);
  }

  const StepGraph& graph_;
  const Trace& trace_;
  Named places_;  // by track
  Named kernels_, operators_;
};

}  // namespace

std::vector<std::int64_t> latest_times(const StepGraph& graph, std::span<const Edge> edges,
                                       const Replay& replay) {
  std::int64_t last_end_ns = replay.time_ns.front();
  for (std::size_t i = 0; i < graph.steps.size(); ++i)
    if (graph.steps[i].steady) last_end_ns = std::max(last_end_ns, replay.steps[i].end_ns);
  std::vector<std::int64_t> latest(graph.time_ns.size());
  for (std::size_t point = 0; point < latest.size(); ++point)
    latest[point] = std::max(last_end_ns, replay.time_ns[point]);
  const auto limit = [&](std::uint32_t point, std::int64_t time_ns) {
    latest[point] = std::min(latest[point], std::max(time_ns, replay.time_ns[point]));
  };
  std::size_t done = 0;  // works that an earlier step's end limits already
  for (std::size_t i = 0; i < graph.steps.size(); ++i) {
    if (!graph.steps[i].steady) continue;
    const Boundary& end = graph.steps[i].end;
    if (end.cpu_point != kNoIndex) limit(end.cpu_point, replay.steps[i].end_ns - end.after_ns);
    for (std::size_t k = done; k < end.launched_count; ++k)
      limit(graph.works[graph.by_launch[k]].end, replay.steps[i].end_ns);
    done = std::max<std::size_t>(done, end.launched_count);
  }
  for (std::size_t point = latest.size(); point-- > 1;)
    for (std::uint32_t i = graph.first_edge[point]; i < graph.first_edge[point + 1]; ++i)
      if (!edges[i].dropped) limit(edges[i].from, latest[point] - edges[i].weight_ns);
  return latest;
}

Slack slack_of(const StepGraph& graph, const Replay& replay) {
  const std::vector<std::int64_t> latest = latest_times(graph, graph.edges, replay);
  std::vector<TrackId> track_of(graph.time_ns.size(), kNone<TrackId>);
  for (const ThreadMoments& thread : graph.threads)
    for (const std::uint32_t point : thread.points) track_of[point] = thread.track;
  for (const GpuWork& work : graph.works)
    track_of[work.end] = graph.trace->slices().track[raw(work.slice)];
  // A CPU that runs ahead does a step's work before the step begins on the GPU.
  const auto cpu_time_of = [&](const Boundary& boundary, std::int64_t otherwise_ns) {
    return boundary.cpu_point == kNoIndex ? otherwise_ns
                                          : replay.time_ns[boundary.cpu_point] + boundary.after_ns;
  };
  std::vector<analysis::Window> steady, on_cpu;
  for (std::size_t i = 0; i < graph.steps.size(); ++i) {
    if (!graph.steps[i].steady) continue;
    steady.push_back(replay.steps[i]);
    on_cpu.push_back({cpu_time_of(graph.steps[i].begin, replay.steps[i].start_ns),
                      cpu_time_of(graph.steps[i].end, replay.steps[i].end_ns)});
  }
  SlackGroups groups(graph);
  for (std::uint32_t point = 1; point < latest.size(); ++point)
    for (std::uint32_t i = graph.first_edge[point]; i < graph.first_edge[point + 1]; ++i) {
      const Edge& edge = graph.edges[i];
      const bool is_piece = edge.kind == EdgeKind::kWork || edge.kind == EdgeKind::kHost ||
                            edge.kind == EdgeKind::kData;
      if (!is_piece || edge.dropped || edge.weight_ns <= 0 || track_of[point] == kNone<TrackId> ||
          !analysis::is_inside(edge.kind == EdgeKind::kWork ? steady : on_cpu,
                               replay.time_ns[edge.from]))
        continue;
      groups.add(edge, track_of[point],
                 latest[point] - (replay.time_ns[edge.from] + edge.weight_ns));
    }
  return groups.slack();
}

}  // namespace lanescope::simulate
