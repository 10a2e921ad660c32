// The calls that started kernels, and where the recording of the GPU stops before that of the CPU.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// A call that starts kernels: one kernel, a cooperative one, or a graph. Copies are not meant.
bool starts_kernels(std::string_view call);

// docs/definitions.md#where-the-gpus-recording-stops.
struct KernelLaunches {
  // By start. What is launched while a stream is captured becomes a graph and does not run: left
  // out.
  std::vector<SliceId> calls;
  // How many of them there are up to the last one whose work is in the trace.
  std::size_t recorded = 0;
  bool kernels_follow = false;  // a kernel, linked or not, begins behind the first call

  std::size_t lost_at_end() const { return calls.size() - recorded; }
  // Five or more calls, and a hundredth of all, stand behind the last one with work. Of a trace
  // whose kernels have no launch calls at all nobody can tell.
  bool gpu_stops_early() const;
};

// O(n log n). Any thread.
KernelLaunches find_kernel_launches(const Trace& trace, const LaunchLinks& links);

}  // namespace lanescope::analysis
