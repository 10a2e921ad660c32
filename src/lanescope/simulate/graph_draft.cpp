#include "lanescope/simulate/graph_draft.h"

#include <algorithm>
#include <utility>

#include "lanescope/analysis/steps.h"

namespace lanescope::simulate {

std::uint32_t DraftThread::at(std::int64_t time_ns) const {
  const auto found = std::lower_bound(
      points.begin(), points.end(), time_ns,
      [](const HostPoint& each, std::int64_t time) { return each.time_ns < time; });
  if (found == points.end() || found->time_ns != time_ns) return kNoIndex;
  return first + static_cast<std::uint32_t>(found - points.begin());
}

std::uint32_t DraftThread::last_at(std::int64_t time_ns) const {
  const auto after = std::upper_bound(
      points.begin(), points.end(), time_ns,
      [](std::int64_t time, const HostPoint& each) { return time < each.time_ns; });
  return after == points.begin() ? kNoIndex
                                 : static_cast<std::uint32_t>(after - points.begin()) - 1;
}

std::uint32_t GraphDraft::launch_name(const GpuWork& work) const {
  return raw(trace.slices().name[raw(work.launch)]);
}

const DraftThread* GraphDraft::main_thread() const {
  if (in.main_thread == kNone<TrackId>) return nullptr;
  const std::uint32_t index = thread_of[raw(in.main_thread)];
  return index == kNoIndex ? nullptr : &threads[index];
}

std::uint32_t GraphDraft::host_point(SliceId slice, std::int64_t time_ns) const {
  const std::uint32_t thread = thread_of[raw(trace.slices().track[raw(slice)])];
  return thread == kNoIndex ? kNoIndex : threads[thread].at(time_ns);
}

std::uint32_t GraphDraft::add(std::uint32_t from, std::uint32_t to, const Edge& edge) {
  if (from == kNoIndex || to == kNoIndex || position[from] >= position[to]) return kNoIndex;
  Edge copy = edge;
  copy.from = position[from];
  pending.push_back(copy);
  targets.push_back(position[to]);
  return static_cast<std::uint32_t>(pending.size() - 1);
}

void GraphDraft::fix(std::uint32_t id, SliceId owner) {
  const std::int64_t weight = time_of(id) - graph.time_ns[0];
  pending.push_back({.kind = EdgeKind::kFixed, .owner = owner, .weight_ns = weight});
  targets.push_back(position[id]);
}

std::int64_t median_or(std::vector<std::int64_t> values, std::int64_t otherwise) {
  return values.empty() ? otherwise : analysis::lower_median(std::move(values));
}

}  // namespace lanescope::simulate
