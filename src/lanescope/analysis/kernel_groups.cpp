#include "lanescope/analysis/kernel_groups.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lanescope/analysis/interval_union.h"

namespace lanescope::analysis {
namespace {

// Name, grid, block, input shapes; of what is no kernel the name alone.
using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

std::uint32_t argument(const Trace& trace, SliceId slice, ArgKey key) {
  if (slice == kNone<SliceId>) return raw(kNone<StringId>);
  return raw(trace.slice_args(slice).text(key).value_or(kNone<StringId>));
}

std::int64_t length(const DeviceWork* work) { return work->end_ns - work->start_ns; }

KernelGroup summarise(const Trace& trace, const LaunchLinks& links,
                      std::vector<const DeviceWork*>& works) {
  std::sort(works.begin(), works.end(), [](const DeviceWork* a, const DeviceWork* b) {
    return std::tuple(length(a), a->start_ns) < std::tuple(length(b), b->start_ns);
  });
  const std::size_t last = works.size() - 1;
  KernelGroup group;
  group.work = works.front()->work;
  group.median_call = works[last / 2]->slice;
  group.op = links.op_of[raw(group.median_call)];
  group.count = works.size();
  group.shortest_ns = length(works.front());
  group.median_ns = length(works[last / 2]);
  group.p95_ns = length(works[last * 95 / 100]);
  group.longest_ns = length(works.back());
  IntervalUnion all;
  std::vector<std::int64_t> distances;
  distances.reserve(works.size());
  for (const DeviceWork* work : works) {
    group.total_ns += length(work);
    all.add(work->start_ns, work->end_ns);
    distances.push_back(std::abs(length(work) - group.median_ns));
    group.bytes += trace.slice_args(work->slice).integer(ArgKey::kBytes).value_or(0);
  }
  all.finish();
  group.busy_ns = all.length_ns();
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(last / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  group.mad_ns = *middle;
  return group;
}

}  // namespace

std::vector<KernelGroup> compute_kernel_groups(const Trace& trace, const LaunchLinks& links,
                                               const DeviceTimeline& timeline,
                                               std::span<const Window> windows) {
  std::map<Key, std::vector<const DeviceWork*>> by_key;
  std::size_t window = 0;
  for (const DeviceWork& work : timeline.work) {
    while (window < windows.size() && windows[window].end_ns <= work.start_ns) ++window;
    if (window == windows.size()) break;
    if (work.start_ns < windows[window].start_ns) continue;
    const std::uint32_t name = raw(trace.slices().name[raw(work.slice)]);
    Key key{name, raw(kNone<StringId>), raw(kNone<StringId>), raw(kNone<StringId>)};
    if (work.work != WorkClass::kCopy)
      key = {name, argument(trace, work.slice, ArgKey::kGrid),
             argument(trace, work.slice, ArgKey::kBlock),
             argument(trace, links.op_of[raw(work.slice)], ArgKey::kInputDims)};
    by_key[key].push_back(&work);
  }
  std::vector<KernelGroup> groups;
  groups.reserve(by_key.size());
  for (auto& [key, works] : by_key) groups.push_back(summarise(trace, links, works));
  std::sort(groups.begin(), groups.end(), [&](const KernelGroup& a, const KernelGroup& b) {
    if (a.busy_ns != b.busy_ns) return a.busy_ns > b.busy_ns;
    const auto left = trace.name(a.median_call), right = trace.name(b.median_call);
    return left != right ? left < right
                         : trace.start_ns(a.median_call) < trace.start_ns(b.median_call);
  });
  return groups;
}

}  // namespace lanescope::analysis
