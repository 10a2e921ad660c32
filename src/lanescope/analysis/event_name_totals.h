// Every event of a trace that is no GPU work, by name: how many, how long, and what it is.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/analysis/event_name.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

struct EventNameTotal {
  StringId raw{};                       // the first of the names that were put together
  EventName name;                       // of that one
  StringId category = kNone<StringId>;  // the trace's own text; kNone: none
  std::int64_t name_count = 0;          // different raw names in this row
  std::int64_t count = 0;
  std::int64_t total_ns = 0;  // sum of durations: a row inside a row counts in both
};

struct EventNameTotals {
  // By kind, largest total first, then by name. Names that differ in counters, addresses and hashes
  // only (EventName::group) are one row.
  std::vector<EventNameTotal> rows;
  std::int64_t count = 0;           // events of all rows
  std::int64_t known_count = 0;     // of them: known, by name or by category
  std::int64_t frame_count = 0;     // of them: Python's frames
  std::int64_t category_count = 0;  // of them: known by their category only
};

// Slices and instants but kernels, copies, memsets and annotations drawn on a stream. One pass, one
// look at each name; O(names) memory. Any thread.
EventNameTotals compute_event_name_totals(const Trace& trace);

}  // namespace lanescope::analysis
