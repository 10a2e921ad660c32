// What recording costs a thread.
#pragma once
#include <algorithm>

namespace lanescope::simulate {

// Where an event begins or ends: so much at most, and at most that share of the time until the thread's next
// event begins or ends. Fitted to programs that were also timed without a profiler;
// docs/measurements/whatif.md has the fit and its error.
inline constexpr double kRecordingNs = 7'500;
inline constexpr double kRecordingShare = 0.5;
// The end of the range that holds most programs: so many times the estimate.
inline constexpr double kMostRecording = 1.6;

// Of one such moment, in ns. `until_next_ns`: at least 0.
inline double recording_cost_ns(double until_next_ns) {
  return std::min(kRecordingNs, until_next_ns * kRecordingShare);
}

}  // namespace lanescope::simulate
