// Queue depth when work begins: launches that had returned by then, minus work that had begun.
// Example: launches return at 10, 20, 30; work begins at 12, 40, 50 -> depths 1, 2, 1.
#include "lanescope/analysis/launch_stats.h"

#include <algorithm>
#include <vector>

#include "lanescope/analysis/launch_queue.h"

namespace lanescope::analysis {

LaunchStats compute_launch_stats(const Trace& trace, const LaunchLinks& links,
                                 const DeviceTimeline& timeline, std::span<const Window> windows) {
  LaunchStats stats;
  const LaunchQueue queue = compute_launch_queue(trace, links, timeline);
  const auto& launched = queue.launched_ns;
  const auto& began = queue.began_ns;
  std::vector<std::int64_t> kernel_ns, call_ns, latency_ns;

  std::vector<SliceId> calls;
  for (const DeviceWork& work : timeline.work) {
    if (!is_inside(windows, work.start_ns)) continue;
    const bool is_kernel = trace.kind(work.slice) == CategoryKind::kKernel;
    const std::int64_t dur_ns = work.end_ns - work.start_ns;
    if (is_kernel) {
      kernel_ns.push_back(dur_ns);
      if (dur_ns < kTinyKernelNs) ++stats.tiny_kernel_count;
    }
    const SliceId launch = links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId>) continue;
    ++stats.linked_count;
    calls.push_back(launch);
    latency_ns.push_back(std::max<std::int64_t>(0, work.start_ns - trace.end_ns(launch)));
    if (links.launched_by(launch).size() > 1)
      ++stats.graph_work_count;
    else if (is_kernel && dur_ns < trace.dur_ns(launch))
      ++stats.shorter_than_launch_count;
    const auto returned =
        std::upper_bound(launched.begin(), launched.end(), work.start_ns) - launched.begin();
    const auto begun = std::lower_bound(began.begin(), began.end(), work.start_ns) - began.begin();
    const auto depth = static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(0, returned - begun));
    if (depth <= 1) ++stats.empty_queue_count;
    stats.deepest_queue = std::max(stats.deepest_queue, depth);
  }
  std::sort(calls.begin(), calls.end());
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  for (const SliceId call : calls) {
    call_ns.push_back(trace.dur_ns(call));
    stats.launch_call_ns += trace.dur_ns(call);
  }
  stats.kernel_count = kernel_ns.size();
  stats.launch_call_count = calls.size();
  stats.median_kernel_ns = lower_median(std::move(kernel_ns));
  stats.median_launch_ns = lower_median(std::move(call_ns));
  stats.median_latency_ns = lower_median(std::move(latency_ns));
  return stats;
}

}  // namespace lanescope::analysis
