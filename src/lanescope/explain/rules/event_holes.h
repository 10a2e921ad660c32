// Holes: places of a step where the threads that launch have no events for a long time while the GPU waits for them.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// The event that ended or began last before a hole, and the one that begins or ends next after it. Of several at the same time:
// the range or the outermost operator.
struct HolePlace {
  SliceId before = kNone<SliceId>, after = kNone<SliceId>;
  bool inside_before = false;  // `before` has not ended: the hole is inside of it
  bool inside_after = false;   // `after` has begun already: the hole is inside of it
};

// All holes at one place.
struct EventHole {
  std::uint64_t times = 0;
  std::int64_t hole_ns = 0, longest_ns = -1;
  std::int64_t waiting_ns = 0;  // hole_ns, and the rest of each wait that a hole causes
  analysis::Window longest;
  std::vector<analysis::Window> windows;  // all, in order of time
  HolePlace place;
};

struct EventHoles {
  std::vector<EventHole> places;  // with most waiting first
  std::int64_t hole_ns = 0, waiting_ns = 0;
};

// Needs GPU work and launch calls. Only places with a hole in each step, three or more without marked steps. Nothing: no such
// place, or the waits at all of them are less than 5 % of a steady step. O(n log n).
std::optional<EventHoles> find_event_holes(const Facts& facts);

}  // namespace lanescope::explain::rules
