// How the CPU kept a device busy: launches, their time, and how full the queue was.
#pragma once
#include <cstdint>
#include <span>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

inline constexpr std::int64_t kTinyKernelNs = 10'000;

// About the device work that began inside some windows. Medians are lower medians, nanoseconds.
// docs/definitions/launches.md#launch-statistics.
struct LaunchStats {
  std::uint64_t kernel_count = 0;       // kernels; copies and memsets left out
  std::uint64_t tiny_kernel_count = 0;  // shorter than kTinyKernelNs
  std::int64_t median_kernel_ns = 0;
  std::uint64_t linked_count = 0;       // kernels, copies and memsets with their launch
  std::uint64_t launch_call_count = 0;  // calls that started them; a graph is one call
  std::uint64_t graph_work_count = 0;   // of linked_count: started by a call that started several
  std::int64_t launch_call_ns = 0;      // CPU time inside those calls
  std::int64_t median_launch_ns = 0;
  std::int64_t median_latency_ns = 0;  // from the launch's end to the work's start, 0 at least
  std::uint64_t shorter_than_launch_count = 0;  // kernels that ran shorter than their own call
  // Work that left the queue empty: when it began, no other launched work was waiting.
  std::uint64_t empty_queue_count = 0;
  std::uint64_t deepest_queue = 0;  // most work that was launched and not begun when
                                    // some work began
};

// `windows` are disjoint and in order. O(n log n). Any thread.
LaunchStats compute_launch_stats(const Trace& trace, const LaunchLinks& links,
                                 const DeviceTimeline& timeline, std::span<const Window> windows);

}  // namespace lanescope::analysis
