// When a device had nothing to run, and why, if the trace shows it.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// docs/definitions/wall.md#idle-causes.
enum class IdleCause : std::uint8_t {
  kHostLate,         // the CPU had not yet launched what ran next
  kAfterSync,        // the same, and the queue had run empty because the CPU waited for the device
  kLaunchLatency,    // launched during the gap, and began up to 20 us after the
                     // launch call returned
  kBetweenQueued,    // launched before the gap began, and the gap is up to 20 us
  kWaiting,          // launched more than 20 us before it began: a dependency, or
                     // something not recorded
  kProfiler,         // the profiler's own work: buffer requests, flushes, instrumentation
  kBeforeFirstWork,  // the first launch of the recording was still to come
  kAfterLastWork,    // nothing was launched any more
  kUnknown,          // what ran next has no launch call in the trace
};
inline constexpr std::size_t kIdleCauseCount = 9;
inline constexpr std::int64_t kLongestLaunchLatencyNs = 20'000;

struct IdlePart {
  std::int64_t start_ns = 0, end_ns = 0;
  IdleCause cause = IdleCause::kUnknown;
  // The CPU thread to look at: the one that launched the next work; at the end of the recording, the
  // one that launched most.
  TrackId thread = kNone<TrackId>;
  SliceId blame = kNone<SliceId>;  // kAfterSync: the call that waited
};

// No stream of the device ran anything in [start_ns, end_ns).
struct Gap {
  std::int64_t start_ns = 0, end_ns = 0;
  SliceId next_work = kNone<SliceId>, launch = kNone<SliceId>;
  std::uint32_t first_part = 0, part_count = 0;  // parts fill the gap completely
};

struct Gaps {
  std::vector<Gap> gaps;  // in order of time
  std::vector<IdlePart> parts;
  std::span<const IdlePart> parts_of(const Gap& gap) const {
    return std::span(parts).subspan(gap.first_part, gap.part_count);
  }
};

// All gaps of a device inside `range`. O(n log n). Any thread.
Gaps find_gaps(const Trace& trace, const LaunchLinks& links, const DeviceTimeline& timeline,
               const Window& range);

// A call in which the CPU may wait for the device: those that block (api_effect::kBlocks) and
// copies from or to pageable memory. The timeline says whether it did.
bool is_blocking_call(const Trace& trace, const LaunchLinks& links, SliceId api_call);

// A row of the profiler's own cost: Activity Buffer Request, Buffer Flush, Instrumentation,
// Resource. Not Lazy Function Loading and Command Buffer Full: these are the driver's.
bool is_profiler_overhead(const Trace& trace, SliceId slice);

// The thread with the most launches outside of autograd nodes, else in them; ties: the first.
// kNone: no launches.
TrackId main_launch_thread(const Trace& trace, const LaunchLinks& links);

}  // namespace lanescope::analysis
