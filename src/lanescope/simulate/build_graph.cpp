#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/simulate/graph_draft.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {
namespace {

// When the work was launched.
std::int64_t called_ns(const GraphDraft& draft, std::uint32_t work) {
  const SliceId launch = draft.graph.works[work].launch;
  return launch == kNone<SliceId> ? kNoTime : draft.trace.start_ns(launch);
}

Boundary boundary_at(const GraphDraft& draft, std::int64_t time_ns) {
  Boundary boundary;
  const auto after = std::lower_bound(
      draft.graph.by_launch.begin(), draft.graph.by_launch.end(), time_ns,
      [&](std::uint32_t each, std::int64_t time) { return called_ns(draft, each) < time; });
  boundary.launched_count = static_cast<std::uint32_t>(after - draft.graph.by_launch.begin());
  const DraftThread* main = draft.main_thread();
  const std::uint32_t last = main ? main->last_at(time_ns) : kNoIndex;
  if (last == kNoIndex) {  // before its first event: at the time of the recording
    boundary.cpu_point = 0;
    boundary.after_ns = time_ns - draft.graph.time_ns[0];
    return boundary;
  }
  boundary.cpu_point = draft.position[main->first + last];
  boundary.after_ns = time_ns - main->points[last].time_ns;
  return boundary;
}

void connect_boundaries(GraphDraft& draft) {
  for (std::uint32_t i = 0; i < draft.graph.works.size(); ++i)
    if (draft.graph.works[i].on_main_device &&
        (draft.graph.works[i].launch != kNone<SliceId> || draft.graph.works[i].before_recording))
      draft.graph.by_launch.push_back(i);
  std::stable_sort(
      draft.graph.by_launch.begin(), draft.graph.by_launch.end(),
      [&](std::uint32_t a, std::uint32_t b) { return called_ns(draft, a) < called_ns(draft, b); });
  std::vector<bool> is_steady(draft.in.steps.steps.size());
  for (const std::size_t step : draft.in.steady) is_steady[step] = true;
  draft.graph.steps.reserve(is_steady.size());
  std::int64_t last_work_ns = std::numeric_limits<std::int64_t>::min();
  for (const GpuWork& work : draft.graph.works)
    last_work_ns = std::max(last_work_ns, draft.trace.end_ns(work.slice));
  for (std::size_t i = 0; i < draft.in.steps.steps.size(); ++i) {
    const analysis::StepRange& step = draft.in.steps.steps[i];
    StepBoundaries each{boundary_at(draft, step.cpu_start_ns), boundary_at(draft, step.cpu_end_ns),
                        is_steady[i]};
    // The whole recording ends with its last work, or with operators after it.
    if (!draft.in.steps.marked) {
      each.end.launched_count = static_cast<std::uint32_t>(draft.graph.by_launch.size());
      if (step.cpu_end_ns <= last_work_ns ||
          draft.graph.time_ns[each.end.cpu_point] <= last_work_ns)
        each.end.cpu_point = kNoIndex;
    }
    draft.graph.steps.push_back(each);
  }
}

// After the edges have their places.
void find_graph_launches(StepGraph& graph) {
  std::unordered_map<std::uint32_t, std::size_t> of_call;
  for (std::uint32_t i = 0; i < graph.works.size(); ++i) {
    const SliceId call = graph.works[i].launch;
    if (call == kNone<SliceId> || !graph.trace->api_call(call).does(api_effect::kLaunchesGraph))
      continue;
    const auto [found, is_new] = of_call.try_emplace(raw(call), graph.graph_launches.size());
    if (is_new) graph.graph_launches.push_back({.call = call, .own_edges = {}, .nodes = {}});
    graph.graph_launches[found->second].nodes.push_back(i);
  }
  if (of_call.empty()) return;
  for (std::uint32_t i = 0; i < graph.edges.size(); ++i) {
    const Edge& edge = graph.edges[i];
    if (edge.kind != EdgeKind::kHost || edge.owner == kNone<SliceId>) continue;
    if (const auto found = of_call.find(raw(edge.owner)); found != of_call.end())
      graph.graph_launches[found->second].own_edges.push_back(i);
  }
}

// Edges in order of their points.
void finish_edges(GraphDraft& draft) {
  draft.work_of = {};  // what the edges were found with
  draft.by_end = {};
  std::vector<std::uint32_t>& first = draft.graph.first_edge;
  first.assign(draft.graph.time_ns.size() + 1, 0);
  for (const std::uint32_t target : draft.targets) ++first[target + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t& target : draft.targets) target = next[target]++;
  const std::vector<std::uint32_t> placed = std::move(draft.targets);
  {
    std::vector<std::uint32_t> pending_at(placed.size());
    for (std::uint32_t i = 0; i < placed.size(); ++i) pending_at[placed[i]] = i;
    draft.graph.edges.reserve(placed.size());  // and not resized: that would write all of it first
    for (const std::uint32_t i : pending_at) draft.graph.edges.push_back(draft.pending[i]);
  }
  draft.pending = {};
  const auto renumber = [&](std::uint32_t& edge) {
    if (edge != kNoIndex) edge = placed[edge];
  };
  for (GpuWork& work : draft.graph.works) {
    renumber(work.launch_edge);
    renumber(work.stream_edge);
    renumber(work.work_edge);
    renumber(work.spare_edge);
    work.start = draft.position[work.start];
    work.end = draft.position[work.end];
  }
  for (const DraftThread& thread : draft.threads) {
    ThreadMoments moments{thread.track, {}};
    moments.points.reserve(thread.points.size());
    for (std::uint32_t i = 0; i < thread.points.size(); ++i)
      moments.points.push_back(draft.position[thread.first + i]);
    draft.graph.threads.push_back(std::move(moments));
  }
  for (HostWait& wait : draft.graph.waits) {
    renumber(wait.wait_edge);
    const auto own = draft.own_edge.find(wait.own_edge);
    wait.own_edge = own == draft.own_edge.end() ? kNoIndex : own->second;
    renumber(wait.own_edge);
  }
}

}  // namespace

std::uint32_t StepGraph::target_of(std::uint32_t edge) const {
  const auto after = std::upper_bound(first_edge.begin(), first_edge.end(), edge);
  return static_cast<std::uint32_t>(after - first_edge.begin()) - 1;
}

StepGraph build_graph(const GraphInput& input) {
  GraphDraft draft(input);
  draft.graph.trace = &input.trace;
  draft.graph.links = &input.links;
  draft.graph.main_thread = input.main_thread;
  draft.graph.is_by_lanescope = input.trace.metadata_json("lanescope_version").has_value();
  add_points(draft);
  // One into each moment of a thread and four for each piece of work, and some for calls that waited.
  const std::size_t usual_edges =
      draft.host_end * std::size_t{9} / 8 + draft.graph.works.size() * std::size_t{4};
  draft.pending.reserve(usual_edges);
  draft.targets.reserve(usual_edges);
  connect_works(draft);
  connect_calls(draft);
  connect_threads(draft);
  connect_boundaries(draft);
  finish_edges(draft);
  find_graph_launches(draft.graph);
  return std::move(draft.graph);
}

}  // namespace lanescope::simulate
