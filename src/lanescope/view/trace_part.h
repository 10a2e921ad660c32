// The part of a trace that a user names: "10ms..12.5ms", or a step. Defined in
// docs/definitions/reading.md#a-part-of-a-trace.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/explain/facts.h"
#include "lanescope/model/trace.h"

namespace lanescope::view {

// Nanoseconds of the trace, half-open.
struct TraceWindow {
  std::int64_t start_ns = 0, end_ns = 0;
};

// At most one of the two.
struct PartAsked {
  std::string window;  // "A..B" as parse_window() takes it; empty: not asked
  std::optional<std::int64_t> step;
  bool is_given() const { return !window.empty() || step.has_value(); }
};

// Error messages begin with "window" or "step", so that a caller can put dashes before the word.

// "A..B", since the origin of the trace (trace_origin_ns). Nothing: an empty text.
// kInvalidArgument: anything else.
Result<std::optional<TraceWindow>> parse_window(const std::string& text);
// From the start of a step's range on the CPU, or of its time on a device, to the later end of the
// two. kInvalidArgument: the trace has no such step.
Result<TraceWindow> window_of_step(const explain::Facts& facts, std::int64_t number);
// Of a part that is given. Errors: as both of the above, and gather_facts(). A step costs O(n log n).
Result<TraceWindow> find_part(const Trace& trace, const PartAsked& asked);

}  // namespace lanescope::view
