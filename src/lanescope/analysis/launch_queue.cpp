#include "lanescope/analysis/launch_queue.h"

#include <algorithm>

namespace lanescope::analysis {

LaunchQueue compute_launch_queue(const Trace& trace, const LaunchLinks& links,
                                 const DeviceTimeline& timeline) {
  LaunchQueue queue;
  for (const DeviceWork& work : timeline.work) {
    const SliceId launch = links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId>) continue;
    queue.launched_ns.push_back(std::min(trace.end_ns(launch), work.start_ns));
    queue.began_ns.push_back(work.start_ns);
  }
  std::sort(queue.launched_ns.begin(), queue.launched_ns.end());
  return queue;
}

}  // namespace lanescope::analysis
