// The steps of a trace, and when each of them used a device.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/iterations.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Nanoseconds since Trace::base_time_ns(). docs/definitions/steps.md#step.
struct StepRange {
  // N of ProfilerStep#N; for an iteration that was found, its number from 1. None: the whole recording.
  std::optional<std::int64_t> number;
  SliceId slice = kNone<SliceId>;
  std::int64_t cpu_start_ns = 0;
  std::int64_t cpu_end_ns = 0;  // the next step's start if there is one, else the range's end
};

struct Steps {
  // There are ProfilerStep#N, or iterations were found. False: the one entry is the whole
  // recording, from the first launch to the end of the last device work.
  bool marked = false;
  std::vector<StepRange> steps;  // in order of time, disjoint; empty if the trace is empty
  // How many steps at the start also pay for start-up: 1 if there are at least two steps.
  std::size_t start_up_count = 0;
  // Steps are marked, but a device works long after them, and without launch calls it is unknown
  // which step the work belongs to: `marked` is false, and the one entry is the whole recording.
  bool device_behind = false;
  // Other processes of the file also mark steps; these are left out.
  bool others_mark = false;
  // No steps are marked, and these were found: `steps` are the iterations, numbered from 1.
  std::optional<Iterations> found;
};

// The steps of `process`, for files of several processes; without it, or if it marks none, all
// steps. Leaves out steps that overlap an earlier one. O(slices). Any thread.
Steps find_steps(const Trace& trace, const LaunchLinks& links,
                 ProcessId process = kNone<ProcessId>);

// The whole recording as one step. O(slices). Any thread.
Steps whole_recording(const Trace& trace, const LaunchLinks& links);

// Fewer than half of the device's work has its launch call, and more than a twentieth of its busy
// time is after the last marked step.
bool runs_behind(const DeviceTimeline& timeline, const Steps& steps);

struct Window {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t length_ns() const { return end_ns - start_ns; }
};
// True: the time is in one of the windows (in order, disjoint). Cost: a binary search.
bool is_inside(std::span<const Window> windows, std::int64_t time_ns);

// When each step used the device, one entry per step. A step begins on a device when the CPU began
// it and the device has finished all work launched before. It ends where the next one begins; the
// last step ends when the CPU and the work launched until then have ended. So a CPU that runs far
// ahead does not make steps short.
std::vector<Window> compute_step_windows(const Trace& trace, const LaunchLinks& links,
                                         const Steps& steps, const DeviceTimeline& timeline);

// Median and median absolute deviation of lengths, and the slow steps: longer than the median by
// more than 20 % and by more than three scaled deviations (1.4826 MAD). Both medians are
// median_of_steps(). With fewer than 3 lengths, none is slow.
struct StepStatistics {
  std::int64_t shortest_ns = 0, median_ns = 0, longest_ns = 0, mad_ns = 0;
  std::vector<std::size_t> slow;  // indices
};
StepStatistics step_statistics(const std::vector<std::int64_t>& lengths_ns);

// The median of one number per step: with an even number of steps, the mean of the two in the
// middle, rounded down. 0: no values.
std::int64_t median_of_steps(std::vector<std::int64_t> values);

// The median for calls, kernels and gaps. It is always one of the values: with an even number, the
// lower of the two in the middle. 0: no values.
std::int64_t lower_median(std::vector<std::int64_t> values);

}  // namespace lanescope::analysis
