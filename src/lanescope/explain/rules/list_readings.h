// torch.tensor(list): Python numbers become a tensor one by one, in code without events.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/rules/event_holes.h"

namespace lanescope::explain::rules {

// True: the events around the hole look like torch.tensor(list). It makes an empty tensor, reads the list into it number by
// number (this is the hole), and then moves or detaches the tensor.
bool is_read_from_list(const Trace& trace, const HolePlace& place);

// Calls of torch.tensor() or torch.as_tensor() that spend half of their time or more in holes. Found by their Python frames.
struct ListReading {
  std::int64_t time_ns = 0;   // of all calls, in steady steps
  std::int64_t elements = 0;  // of the tensor that the longest call makes; 0: unknown
  SliceId longest = kNone<SliceId>;
};

// Searches the thread of the first place. Empty (no `longest`): there are no Python frames, or all such calls together take less
// than half of the time of the holes.
ListReading list_reading(const Facts& facts, const EventHoles& found);

// Writes the brief, the action and a piece of evidence.
void tell_list(const Facts& facts, const ListReading& reading, Finding& finding);

// torch.tensor(list) reads the list twice, and the hole is the second reading. This function marks the first reading, too, as time
// that the fix saves. Returns how long the GPU waits for the first readings of all steps together, in ns.
std::int64_t spare_first_readings(const Facts& facts, const EventHole& main, Finding& finding);

}  // namespace lanescope::explain::rules
