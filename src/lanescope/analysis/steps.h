// The steps of a trace and when each of them held a device.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Nanoseconds since Trace::base_time_ns(). docs/definitions.md#steps.
struct StepRange {
  std::optional<std::int64_t> number;  // of ProfilerStep#N; none: the whole recording
  SliceId slice = kNone<SliceId>;
  std::int64_t cpu_start_ns = 0;
  std::int64_t cpu_end_ns = 0;  // the next step's start where one follows, else the range's end
};

struct Steps {
  bool marked = false;  // false: no ProfilerStep#N, and the one entry is the whole recording: from
                        // the first launch to the end of the last device work
  std::vector<StepRange> steps;  // in order of time, disjoint; empty when the trace is
  // The first entry that numbers about "a step" are made from; those before it are start-up. 1 as
  // soon as there are two steps.
  std::size_t first_steady = 0;
  // Steps are marked, but a device works on long behind them and no launch calls tell which work is
  // whose: `marked` is false, and the one entry is the whole recording.
  bool device_behind = false;
  // Other processes of the file mark steps as well, which are left out.
  bool others_mark = false;
};

// Of a file of several processes the steps of one are meant: `process`; without it, or if it marks
// none, all. Steps that overlap an earlier one are left out. O(slices). Any thread.
Steps find_steps(const Trace& trace, const LaunchLinks& links,
                 ProcessId process = kNone<ProcessId>);

// The whole recording as one step. O(slices). Any thread.
Steps whole_recording(const Trace& trace, const LaunchLinks& links);

// Fewer than half of the device's work has its launch call, and more than a twentieth of its busy
// time lies behind the last marked step.
bool runs_behind(const DeviceTimeline& timeline, const Steps& steps);

struct Window {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t length_ns() const { return end_ns - start_ns; }
};

// When each step held the device, one entry a step. A step begins on a device when the CPU began
// it, or when the device was done with everything launched before that, whichever is later; it ends
// where the next one begins, and the last one when the CPU and the work launched until then have
// ended. So a CPU that runs far ahead does not make steps short.
std::vector<Window> compute_step_windows(const Trace& trace, const LaunchLinks& links,
                                         const Steps& steps, const DeviceTimeline& timeline);

// Median and median absolute deviation of lengths, and which are slow: longer than the median by
// more than 20 % and by more than three scaled deviations (1.4826 MAD). Of an even number the lower
// of the two in the middle. Of fewer than 3 lengths none is slow.
struct StepStatistics {
  std::int64_t shortest_ns = 0, median_ns = 0, longest_ns = 0, mad_ns = 0;
  std::vector<std::size_t> slow;  // indices
};
StepStatistics step_statistics(const std::vector<std::int64_t>& lengths_ns);

// The lower of the two in the middle; 0 of nothing.
std::int64_t lower_median(std::vector<std::int64_t> values);

}  // namespace lanescope::analysis
