#include "lanescope/simulate/change_kinds.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace lanescope::simulate {
namespace {

// The step that holds the edge's begin.
std::optional<std::size_t> step_around(
    const ChangedGraph& changed, const std::vector<std::pair<std::int64_t, std::int64_t>>& steps,
    const Edge& edge) {
  const std::int64_t time_ns = changed.graph.time_ns[edge.from];
  auto after =
      std::upper_bound(steps.begin(), steps.end(), time_ns,
                       [](std::int64_t time, const auto& each) { return time < each.first; });
  if (after == steps.begin() || (--after)->second <= time_ns) return std::nullopt;
  return static_cast<std::size_t>(after - steps.begin());
}

std::int64_t boundary_ns(const ChangedGraph& changed, const Boundary& boundary) {
  return boundary.cpu_point == kNoIndex
             ? changed.graph.time_ns.back()
             : changed.graph.time_ns[boundary.cpu_point] + boundary.after_ns;
}

}  // namespace

void scale_loader(ChangedGraph& changed, double by) {
  for (Edge& edge : changed.edges) {
    if (!is_loader_time(edge)) continue;
    scale(edge, by);
    ++changed.applied.count;
  }
}

// Time in the loader of each steady step. Workers make batches while the step runs, so a step
// waits for what they do not make in time.
std::optional<Error> change_workers(ChangedGraph& changed) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // from, to
  for (const StepBoundaries& step : changed.graph.steps)
    steps.emplace_back(boundary_ns(changed, step.begin), boundary_ns(changed, step.end));
  std::sort(steps.begin(), steps.end());
  std::vector<std::int64_t> loader_ns(steps.size(), 0);
  bool is_single = false, any = false;
  for (const Edge& edge : changed.edges) {
    if (!is_loader_time(edge) || edge.owner == kNone<SliceId> || edge.weight_ns == 0) continue;
    any = true;
    is_single |= changed.trace.name(edge.owner).find("SingleProcess") != std::string_view::npos;
    if (const auto step = step_around(changed, steps, edge)) loader_ns[*step] += edge.weight_ns;
  }
  if (!any) return std::nullopt;  // nothing fits
  if (!is_single && !changed.change.from)
    return Error{Errc::kInvalidArgument,
                 "'workers N' expects to know how many workers there are now, which the trace "
                 "does not say; found only N. Use 'workers 8 from 2'"};
  for (Edge& edge : changed.edges) {
    const auto step = is_loader_time(edge) ? step_around(changed, steps, edge) : std::nullopt;
    if (!step || loader_ns[*step] == 0) continue;
    // The loader decides the step's pace, so as many workers as there are now make one batch a
    // step.
    const std::int64_t step_ns = steps[*step].second - steps[*step].first;
    const auto now_ns = static_cast<double>(loader_ns[*step]);
    const double batch_ns =
        is_single ? now_ns : static_cast<double>(step_ns) * changed.change.from.value_or(0);
    const double wait_ns =
        std::max(0.0, batch_ns / *changed.change.number - (static_cast<double>(step_ns) - now_ns));
    scale(edge, std::min(1.0, wait_ns / now_ns));
    ++changed.applied.count;
  }
  changed.applied.notes.push_back(
      "workers are taken to make batches at the same rate each, with a free core for each: "
      "storage and memory bandwidth may limit them earlier");
  return std::nullopt;
}

}  // namespace lanescope::simulate
