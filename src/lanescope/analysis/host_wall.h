// Where the time of a CPU thread went during a step: parts that add up to it to the nanosecond. For
// recordings without GPU work, whose steps are what a thread does.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "lanescope/analysis/host_timeline.h"
#include "lanescope/analysis/interval_union.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// docs/definitions.md#host-wall. A moment belongs to the first of these that it lies in.
enum class HostPart : std::uint8_t {
  kCompile,    // rows of torch.compile compiling: "... (dynamo_timed)"
  kLoader,     // enumerate(DataLoader)#...: the next batch
  kBackward,   // the autograd engine's rows; of other threads while this one is outside
  kOptimizer,  // Optimizer.step#..., Optimizer.zero_grad#...
  kOperator,   // any other operator
  kOutside,    // Python, waiting, and what no event tells
};
inline constexpr std::size_t kHostPartCount = 6;

// Nanoseconds, one a part; they add up to wall_ns.
struct HostWall {
  std::int64_t wall_ns = 0;
  std::int64_t part_ns[kHostPartCount] = {};
  std::int64_t of(HostPart part) const { return part_ns[static_cast<std::size_t>(part)]; }
  HostWall& operator+=(const HostWall& other);
};

// Looks at every slice when made: O(n log n). Keeps a byte a slice; borrows both. Any thread.
class HostWalls {
 public:
  HostWalls(const Trace& trace, const LaunchLinks& links, const HostTimeline& timeline);
  // O(log n + slices in the window).
  HostWall of(TrackId thread, const Window& window) const;

 private:
  const Trace& trace_;
  const HostTimeline& timeline_;
  std::map<ProcessId, IntervalUnion> backward_;  // of all its threads
  std::vector<HostPart> part_of_;                // one a slice
};

// The thread that operators and annotations took most time on, of equals the first one; kNone:
// there is none. O(n).
TrackId busiest_host_thread(const Trace& trace, const SliceNesting& nesting);

// The thread whose time is a step's: the one that marks it, unless a thread of its process has ten
// times as much time in operators outside of the backward pass: then that one. O(n).
TrackId step_thread(const Trace& trace, const SliceNesting& nesting, TrackId marks);

}  // namespace lanescope::analysis
