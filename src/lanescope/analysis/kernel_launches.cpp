#include "lanescope/analysis/kernel_launches.h"

#include <algorithm>

namespace lanescope::analysis {

bool starts_kernels(std::string_view call) {
  return call.find("LaunchKernel") != std::string_view::npos ||
         call.find("LaunchCooperativeKernel") != std::string_view::npos ||
         call.find("GraphLaunch") != std::string_view::npos;
}

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
      if (!is_api_call(trace.kind(id))) continue;
      const std::string_view call = trace.name(id);
      if (call.find("StreamBeginCapture") != std::string_view::npos)
        captures = true;
      else if (call.find("StreamEndCapture") != std::string_view::npos)
        captures = false;
      else if (!captures && starts_kernels(call))
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
