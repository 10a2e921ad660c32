// What each device did, in order of time: compute, communication, copies, and when nothing ran.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// In order of who owns a moment that several share: while anything computes, the wall is compute.
enum class WorkClass : std::uint8_t { kCompute, kCommunication, kCopy };
inline constexpr std::size_t kWorkClassCount = 3;

// One kernel, copy or memset. Nanoseconds since Trace::base_time_ns().
struct DeviceWork {
  SliceId slice{};
  std::int64_t start_ns = 0, end_ns = 0;
  WorkClass work = WorkClass::kCompute;
  // Its launch call is not in the trace and nothing with a launch ran before it on its stream: left
  // over from before the recording. False on a device that has_launches() is false of.
  bool before_recording = false;
};

// A stretch in which the same class owned the device without a pause.
struct BusySegment {
  std::int64_t start_ns = 0, end_ns = 0;
  WorkClass work = WorkClass::kCompute;
};

struct DeviceTimeline {
  std::int64_t device = 0;
  std::vector<DeviceWork> work;       // by (start, longer first, name)
  std::vector<BusySegment> busy;      // disjoint, in order; what lies between is idle
  std::int64_t communication_ns = 0;  // union of communication, hidden or not
  std::uint64_t launched_count = 0;   // of `work`: the launch call is in the trace

  bool has_launches() const { return launched_count * 2 > work.size(); }

  // Time of each class inside [start_ns, end_ns); the rest of it is idle. O(log n).
  std::array<std::int64_t, kWorkClassCount> time_within(std::int64_t start_ns,
                                                        std::int64_t end_ns) const;

  std::vector<std::array<std::int64_t, kWorkClassCount>> before;  // of the first i busy segments
};

// docs/definitions.md#wall-partition. One entry a device that worked, by device number. O(n log n).
// Any thread.
std::vector<DeviceTimeline> compute_device_timelines(const Trace& trace, const LaunchLinks& links);

}  // namespace lanescope::analysis
