#include "lanescope/analysis/kernel_launches.h"

#include <algorithm>

namespace lanescope::analysis {

bool KernelLaunches::gpu_stops_early() const {
  return (recorded > 0 || !kernels_follow) && lost_at_end() >= 5 &&
         lost_at_end() * 100 >= calls.size();
}

KernelLaunches find_kernel_launches(const Trace& trace, const LaunchLinks& links) {
  KernelLaunches result;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::kThread) continue;
    bool captures = false;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      const ApiCall call = trace.api_call(id);
      if (call.does(api_effect::kBeginsCapture))
        captures = true;
      else if (call.does(api_effect::kEndsCapture))
        captures = false;
      else if (!captures && call.does(api_effect::kStartsKernels))
        result.calls.push_back(id);
    }
  }
  std::stable_sort(result.calls.begin(), result.calls.end(),
                   [&](SliceId a, SliceId b) { return trace.start_ns(a) < trace.start_ns(b); });
  result.recorded = result.calls.size();
  while (result.recorded > 0 && links.launched_by(result.calls[result.recorded - 1]).empty())
    --result.recorded;
  for (std::uint32_t i = 0; i < trace.slices().size() && !result.kernels_follow; ++i)
    result.kernels_follow = !result.calls.empty() &&
                            trace.kind(SliceId{i}) == CategoryKind::kKernel &&
                            trace.start_ns(SliceId{i}) >= trace.start_ns(result.calls.front());
  return result;
}

}  // namespace lanescope::analysis
