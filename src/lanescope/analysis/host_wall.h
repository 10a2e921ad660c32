// Where the time of a CPU thread went during a step, in parts that add up to the nanosecond. For
// recordings without GPU work.
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

// docs/definitions/wall.md#host-wall. A moment belongs to the first part that contains it.
enum class HostPart : std::uint8_t {
  kCompile,    // rows of torch.compile compiling: "... (dynamo_timed)"
  kLoader,     // enumerate(DataLoader)#...: the next batch
  kBackward,   // the autograd engine's rows; also of other threads, while this one is outside
  kOptimizer,  // Optimizer.step#..., Optimizer.zero_grad#...
  kOperator,   // any other operator
  kOutside,    // Python, waiting, and time without an event
};
inline constexpr std::size_t kHostPartCount = 6;

// Nanoseconds, one per part; they add up to wall_ns.
struct HostWall {
  std::int64_t wall_ns = 0;
  std::int64_t part_ns[kHostPartCount] = {};
  std::int64_t of(HostPart part) const { return part_ns[static_cast<std::size_t>(part)]; }
  HostWall& operator+=(const HostWall& other);
};

// The constructor reads every slice: O(n log n), partly on `threads` threads (0: usual_threads()). Keeps a byte per slice;
// borrows both. Any thread.
class HostWalls {
 public:
  HostWalls(const Trace& trace, const LaunchLinks& links, const HostTimeline& timeline,
            unsigned threads = 1);
  // O(log n + slices in the window).
  HostWall of(TrackId thread, const Window& window) const;

 private:
  const Trace& trace_;
  const HostTimeline& timeline_;
  std::map<ProcessId, IntervalUnion> backward_;  // of all its threads
  std::vector<HostPart> part_of_;                // one per slice
};

// The thread with most time in operators and annotations; ties: the first one. kNone: none. O(n).
TrackId busiest_host_thread(const Trace& trace, const SliceNesting& nesting);

// The thread that runs the steps: the one that marks them, unless another thread of its process has
// ten times as much time in operators outside of the backward pass. O(n).
TrackId step_thread(const Trace& trace, const SliceNesting& nesting, TrackId marks);

}  // namespace lanescope::analysis
