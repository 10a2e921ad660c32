// What each device did, in order of time: compute, communication, copies or nothing.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// If several run at once, the first one counts: while anything computes, the time is compute.
enum class WorkClass : std::uint8_t { kCompute, kCommunication, kCopy };
inline constexpr std::size_t kWorkClassCount = 3;

// One kernel, copy or memset. Nanoseconds since Trace::base_time_ns().
struct DeviceWork {
  SliceId slice{};
  std::int64_t start_ns = 0, end_ns = 0;
  WorkClass work = WorkClass::kCompute;
  // Launched before the recording: its launch call is not in the trace, and nothing with a launch
  // ran before it on its stream. Always false if the device has no has_launches().
  bool before_recording = false;
};

// A period in which one class used the device without a pause.
struct BusySegment {
  std::int64_t start_ns = 0, end_ns = 0;
  WorkClass work = WorkClass::kCompute;
};

struct DeviceTimeline {
  std::int64_t device = 0;
  std::vector<DeviceWork> work;       // by (start, longer first, name)
  std::vector<BusySegment> busy;      // disjoint, in order; idle in between
  std::int64_t communication_ns = 0;  // union of communication, hidden or not
  std::uint64_t launched_count = 0;   // of `work`: the launch call is in the trace

  bool has_launches() const { return launched_count * 2 > work.size(); }

  // Time of each class inside [start_ns, end_ns); the rest of it is idle. O(log n).
  std::array<std::int64_t, kWorkClassCount> time_within(std::int64_t start_ns,
                                                        std::int64_t end_ns) const;

  std::vector<std::array<std::int64_t, kWorkClassCount>> before;  // of the first i busy segments
};

// docs/definitions/wall.md#wall-partition. One entry per device with work, by device number.
// O(n log n). Any thread.
std::vector<DeviceTimeline> compute_device_timelines(const Trace& trace, const LaunchLinks& links);

}  // namespace lanescope::analysis
