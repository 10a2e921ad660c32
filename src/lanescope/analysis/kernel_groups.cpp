#include "lanescope/analysis/kernel_groups.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"

namespace lanescope::analysis {
namespace {

std::int64_t length(const DeviceWork* work) { return work->end_ns - work->start_ns; }

// Maps a moment to the time spent inside the windows up to it: mapped intervals lose only
// what is outside.
class InsideTime {
 public:
  explicit InsideTime(std::span<const Window> windows) {
    for (const Window& window : windows) inside_.add(window.start_ns, window.end_ns);
    inside_.finish();
    if (!windows.empty()) origin_ns_ = windows.front().start_ns;
  }
  std::int64_t operator()(std::int64_t time_ns) const {
    return inside_.length_within_ns(origin_ns_, time_ns);
  }

 private:
  IntervalUnion inside_;
  std::int64_t origin_ns_ = 0;
};

KernelGroup summarise(const Trace& trace, const LaunchLinks& links, const InsideTime& inside,
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
    all.add(inside(work->start_ns), inside(work->end_ns));
    distances.push_back(std::abs(length(work) - group.median_ns));
    group.bytes += trace.slice_args(work->slice).integer(ArgKey::kBytes).value_or(0);
  }
  all.finish();
  group.busy_ns = all.length_ns();
  group.mad_ns = lower_median(std::move(distances));
  return group;
}

}  // namespace

KernelKey kernel_key(const Trace& trace, const LaunchLinks& links, SliceId kernel) {
  const auto text = [&](SliceId slice, ArgKey key) {
    return trace.slice_args(slice).text(key).value_or(kNone<StringId>);
  };
  KernelKey key{trace.slices().name[raw(kernel)], text(kernel, ArgKey::kGrid),
                text(kernel, ArgKey::kBlock), kNone<StringId>};
  if (const SliceId op = links.op_of[raw(kernel)]; op != kNone<SliceId>)
    key.input_dims = text(op, ArgKey::kInputDims);
  return key;
}

std::vector<KernelGroup> compute_kernel_groups(const Trace& trace, const LaunchLinks& links,
                                               const DeviceTimeline& timeline,
                                               std::span<const Window> windows) {
  std::map<KernelKey, std::vector<const DeviceWork*>> by_key;
  std::size_t window = 0;
  for (const DeviceWork& work : timeline.work) {
    while (window < windows.size() && windows[window].end_ns <= work.start_ns) ++window;
    if (window == windows.size()) break;
    if (work.start_ns < windows[window].start_ns) continue;
    KernelKey key = kernel_key(trace, links, work.slice);
    if (work.work == WorkClass::kCopy) key = {.name = key.name};
    by_key[key].push_back(&work);
  }
  const InsideTime inside(windows);
  std::vector<KernelGroup> groups;
  groups.reserve(by_key.size());
  for (auto& [key, works] : by_key) groups.push_back(summarise(trace, links, inside, works));
  sort_rows(groups.begin(), groups.end(), [&](const KernelGroup& a, const KernelGroup& b) {
    if (a.busy_ns != b.busy_ns) return a.busy_ns > b.busy_ns;
    const auto left = trace.name(a.median_call), right = trace.name(b.median_call);
    return left != right ? left < right
                         : trace.start_ns(a.median_call) < trace.start_ns(b.median_call);
  });
  return groups;
}

}  // namespace lanescope::analysis
