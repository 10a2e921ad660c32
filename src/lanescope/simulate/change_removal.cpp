#include "lanescope/simulate/change_kinds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/simulate/name_pattern.h"

namespace lanescope::simulate {
namespace {

bool waits_for_input(const ChangedGraph& changed, const HostWait& wait) {
  return changed.trace.api_call(wait.call).does(api_effect::kCopies) &&
         is_copy_to_device(changed.trace.name(changed.graph.works[wait.work].slice));
}

// How much of [from, to] lies in the windows, which are disjoint and in order.
std::int64_t time_within(const std::vector<analysis::Window>& windows, std::int64_t from,
                         std::int64_t to) {
  std::int64_t within_ns = 0;
  for (auto window = std::lower_bound(
           windows.begin(), windows.end(), from,
           [](const analysis::Window& each, std::int64_t time) { return each.end_ns <= time; });
       window != windows.end() && window->start_ns < to; ++window)
    within_ns += std::min(window->end_ns, to) - std::max(window->start_ns, from);
  return within_ns;
}

// The thread's own time in the windows goes, without what recording cost in it where that was taken out before. It no
// longer waits for another thread in them.
void remove_windows(ChangedGraph& changed) {
  const StepGraph& graph = changed.graph;
  for (const ThreadMoments& thread : graph.threads) {
    if (thread.track != changed.change.thread) continue;
    for (std::size_t i = 0; i + 1 < thread.points.size(); ++i) {
      const std::uint32_t from = thread.points[i], to = thread.points[i + 1];
      const std::int64_t length_ns = graph.time_ns[to] - graph.time_ns[from];
      const std::int64_t within_ns =
          time_within(changed.change.windows, graph.time_ns[from], graph.time_ns[to]);
      if (within_ns <= 0 || length_ns <= 0) continue;
      const double left = 1 - static_cast<double>(within_ns) / static_cast<double>(length_ns);
      for (std::uint32_t e = graph.first_edge[to]; e < graph.first_edge[to + 1]; ++e) {
        Edge& edge = changed.edges[e];
        const bool is_own =
            edge.from == from && (edge.kind == EdgeKind::kHost || edge.kind == EdgeKind::kData);
        if (is_own) scale(edge, left);
        changed.applied.count += is_own;
        if (edge.kind != EdgeKind::kHandOver) continue;
        if (thread.track != graph.main_thread)
          scale(edge, left);  // it still begins when the main thread has woken it
        else if (within_ns * 2 >= length_ns)
          edge.dropped = true;
      }
    }
  }
}

// Python between two of these calls is there to make them, if it is short and has no other event.
constexpr std::int64_t kLongestBetweenNs = 50'000;

void remove_between(ChangedGraph& changed, const std::vector<bool>& inside_it) {
  const StepGraph& graph = changed.graph;
  std::vector<std::uint32_t> between;  // edges since the last of these calls
  for (const ThreadMoments& thread : graph.threads) {
    bool follows_one = false;
    std::int64_t since_ns = 0;
    for (std::size_t i = 0; i + 1 < thread.points.size(); ++i) {
      const std::uint32_t from = thread.points[i], to = thread.points[i + 1];
      const auto begin = changed.edges.begin() + graph.first_edge[to],
                 end = changed.edges.begin() + graph.first_edge[to + 1];
      const auto own = std::find_if(begin, end, [&](const Edge& edge) {
        return edge.from == from && edge.kind == EdgeKind::kHost;
      });
      const SliceId owner = own == end ? kNone<SliceId> : own->owner;
      if (owner != kNone<SliceId> && inside_it[raw(owner)]) {
        if (follows_one && graph.time_ns[from] - since_ns <= kLongestBetweenNs)
          for (const std::uint32_t edge : between) take_no_time(changed.edges[edge]);
        follows_one = true;
        since_ns = graph.time_ns[to];
        between.clear();
        continue;
      }
      const CategoryKind kind =
          owner == kNone<SliceId> ? CategoryKind::kOther : changed.trace.kind(owner);
      if (own == end || kind == CategoryKind::kCpuOp || is_api_call(kind)) follows_one = false;
      if (follows_one)
        between.push_back(static_cast<std::uint32_t>(own - changed.edges.begin()));
      else
        between.clear();
    }
    between.clear();
  }
}

}  // namespace

void remove_named(ChangedGraph& changed) {
  if (!changed.change.windows.empty()) {
    remove_windows(changed);
    return;
  }
  const std::vector<bool> inside_it = slices_inside(changed);
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> of_launch;  // removed, all
  for (const GpuWork& work : changed.graph.works) {
    const bool fits = work_fits(changed, work, inside_it);
    if (work.launch != kNone<SliceId>) {
      auto& [removed, all] = of_launch[raw(work.launch)];
      ++all;
      removed += fits;
    }
    if (!fits || work.work_edge == kNoIndex) continue;
    changed.edges[work.work_edge].weight_ns = 0;
    if (work.launch_edge != kNoIndex && work.stream_edge != kNoIndex)
      changed.edges[work.launch_edge].dropped = true;
    if (work.stream_edge != kNoIndex) take_no_time(changed.edges[work.stream_edge]);
    ++changed.applied.count;
  }
  for (Edge& edge : changed.edges) {
    if (edge.kind != EdgeKind::kHost || edge.owner == kNone<SliceId>) continue;
    const auto launch = of_launch.find(raw(edge.owner));
    const bool is_inside = inside_it[raw(edge.owner)];
    changed.applied.count += is_inside;
    if (is_inside || (launch != of_launch.end() && launch->second.first == launch->second.second))
      edge.weight_ns = 0;
  }
  if (!changed.change.slices.empty()) remove_between(changed, inside_it);
  // A call that is gone does not wait.
  for (const HostWait& wait : changed.graph.waits)
    if (inside_it[raw(wait.call)]) changed.edges[wait.wait_edge].dropped = true;
  if (changed.applied.count > 0)
    changed.applied.notes.push_back(
        "it is gone with its launch calls and all that it does on the GPU; operators around it "
        "keep their own CPU time");
}

void remove_sync(ChangedGraph& changed) {
  std::vector<bool> fits(changed.trace.slices().size(), true);
  if (!changed.change.name.empty())
    fits = slices_inside(changed, NamePattern(changed.trace, changed.change.name));
  std::unordered_set<std::uint32_t> gone, uploads;
  for (const SliceId call : changed.change.slices) uploads.insert(raw(call));
  for (const HostWait& wait : changed.graph.waits) {
    if (!fits[raw(wait.call)] || (changed.change.name.empty() && waits_for_input(changed, wait) &&
                                  !uploads.contains(raw(wait.call))))
      continue;
    changed.edges[wait.wait_edge].dropped = true;
    if (!changed.trace.api_call(wait.call).does(api_effect::kCopies)) gone.insert(raw(wait.call));
    ++changed.applied.count;
  }
  take_no_cpu_time(changed, gone);
  if (changed.applied.count > 0)
    changed.applied.notes.push_back(
        "the CPU no longer waits; the copies and operators around the waits still run. A program "
        "that needs the value on the CPU cannot do without the wait");
}

}  // namespace lanescope::simulate
