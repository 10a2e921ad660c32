// One picture of the lanes: everything that the page needs to draw a window of time, as one buffer.
// Layout: docs/formats/view_api.md#frame.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/view/lanes.h"

namespace lanescope::view {

struct FrameRequest {
  // Nanoseconds since Lanes::origin_ns(). `step_ns` is what one pixel shows; a power of two at or
  // below it is used.
  std::int64_t t0_ns = 0, t1_ns = 0, step_ns = 1;
  std::vector<std::uint32_t> lanes;
  std::uint32_t generation = 0;  // comes back in the buffer
};
inline constexpr std::size_t kMostFrameLanes = 512, kMostFrameEntries = 16'384;
inline constexpr std::int64_t kMostFrameSteps = 16'384;  // of a window

enum FrameFlag : std::uint8_t { kOverlapFlag = 1, kClippedFlag = 2, kZeroLengthFlag = 4 };

// kInvalidArgument: an empty window, too many lanes or steps, a lane that does not exist. At most
// kMostFrameEntries rows are in it. O(rows * (steps + log n)). Any thread.
Result<std::string> make_frame(const Lanes& lanes, const FrameRequest& request);

}  // namespace lanescope::view
