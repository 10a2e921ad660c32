// The calls that started kernels, and where the GPU's recording stops before the CPU's.
#pragma once
#include <cstddef>
#include <vector>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// docs/definitions/steps.md#where-the-gpus-recording-stops.
struct KernelLaunches {
  // By start. Launches during a capture are left out: they become a graph and do not run.
  std::vector<SliceId> calls;
  // The number of calls up to the last one whose work is in the trace.
  std::size_t recorded = 0;
  bool kernels_follow = false;  // a kernel, linked or not, begins after the first call

  std::size_t lost_at_end() const { return calls.size() - recorded; }
  // At least five calls, and a hundredth of all, come after the last one with work. False if the
  // trace has no launch calls: then it is unknown.
  bool gpu_stops_early() const;
};

// O(n log n). Any thread.
KernelLaunches find_kernel_launches(const Trace& trace, const LaunchLinks& links);

}  // namespace lanescope::analysis
