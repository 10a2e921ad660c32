// Where the time of a CPU thread went during a step: parts that add up to it to the nanosecond. For
// recordings without GPU work, whose steps are what a thread does.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/analysis/host_timeline.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// docs/definitions.md#host-wall. A moment belongs to the first of these that it lies in.
enum class HostPart : std::uint8_t {
  kCompile,    // rows of torch.compile compiling: "... (dynamo_timed)"
  kLoader,     // enumerate(DataLoader)#...: the next batch
  kBackward,   // the autograd engine's rows
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

// Looks at every slice when made: O(n). Keeps a byte a slice; borrows the timeline. Any thread.
class HostWalls {
 public:
  HostWalls(const Trace& trace, const LaunchLinks& links, const HostTimeline& timeline);
  // O(log n + slices in the window).
  HostWall of(TrackId thread, const Window& window) const;

 private:
  const HostTimeline& timeline_;
  std::vector<HostPart> part_of_;  // one a slice
};

// The thread that operators took most time on, of equals the first one; kNone: there is none. O(n).
TrackId busiest_host_thread(const Trace& trace, const SliceNesting& nesting);

}  // namespace lanescope::analysis
