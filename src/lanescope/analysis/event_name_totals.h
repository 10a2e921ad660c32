// All events of a trace that are not GPU work, by name: how many, how long, and what they are.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/model/trace.h"
#include "lanescope/names/event_name.h"

namespace lanescope::analysis {

struct EventNameTotal {
  StringId raw{};                       // the first name of this row
  names::EventName name;                // of that name
  StringId category = kNone<StringId>;  // as in the trace; kNone: none
  std::int64_t name_count = 0;          // different raw names in this row
  std::int64_t count = 0;
  std::int64_t total_ns = 0;  // sum of durations: nested events count in both
};

struct EventNameTotals {
  // By kind, largest total first, then by name. Names that differ only in counters, addresses and
  // hashes (EventName::group) are one row.
  std::vector<EventNameTotal> rows;
  std::int64_t count = 0;           // events of all rows
  std::int64_t known_count = 0;     // of them: known, by name or by category
  std::int64_t frame_count = 0;     // of them: Python's frames
  std::int64_t category_count = 0;  // of them: known by their category only
};

// All slices and instants except kernels, copies, memsets and annotations on a stream. One pass;
// explains each name once; O(names) memory. Any thread.
EventNameTotals compute_event_name_totals(const Trace& trace);

}  // namespace lanescope::analysis
