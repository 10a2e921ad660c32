// What a recording left out to keep its budget, and what it cost: the entries lanescope_thinned and
// lanescope_cost of a trace. docs/definitions/recording.md#budget.
#pragma once
#include <cstdint>
#include <optional>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Periods at least partly in the trace's window. `*_ns` are times within the window.
struct Thinning {
  std::int64_t without_inputs_ns = 0, without_stacks_ns = 0;
  std::int64_t without_short_operators_ns = 0;
  std::int64_t short_ns = 0;               // left-out operators took less; the largest limit
                                           // of these periods
  std::int64_t operators_in_parts_ns = 0;  // of which:
  std::int64_t paused_ns = 0;              // without operators, at least
  std::int64_t ranges_paused_ns = 0;       // of which: without ranges of the program, too
  std::uint64_t pause_count = 0;           // in the periods, inside the window or not
  // Allocations and frees are recorded until then, and none after it: ns since
  // Trace::base_time_ns(). Nothing: to the end of the window.
  std::optional<std::int64_t> memory_end_ns = {};
  std::int64_t with_memory_ns = 0;  // with memory_end_ns: the part of the window before it
};

struct RecordingCost {
  double budget_ratio = 0, share_ratio = 0;
  // The share of the same time in calls of the GPU's API, which a budget counts and never leaves out.
  double always_recorded_ratio = 0;
  std::uint64_t left_out_operators = 0;  // short ones, in all of the recording
};

// Nothing: the recording is complete, or the entry cannot be understood. O(entry).
std::optional<Thinning> find_thinning(const Trace& trace);
// Thinning::memory_end_ns: how much memory was allocated after it is unknown. Nothing: there are
// records up to the end, or none at all. O(entry).
std::optional<std::int64_t> find_memory_end(const Trace& trace);
// Nothing: recorded without a budget. O(1).
std::optional<RecordingCost> find_recording_cost(const Trace& trace);

}  // namespace lanescope::analysis
