#include "lanescope/simulate/change_kinds.h"

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

}  // namespace

void remove_named(ChangedGraph& changed) {
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
  std::unordered_set<std::uint32_t> gone;
  for (const HostWait& wait : changed.graph.waits) {
    if (!fits[raw(wait.call)] || (changed.change.name.empty() && waits_for_input(changed, wait)))
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
