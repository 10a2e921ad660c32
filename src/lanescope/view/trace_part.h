// The part of a trace that a user names: "10ms..12.5ms", or a step, or categories. Defined in
// docs/definitions/reading.md#a-part-of-a-trace.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"
#include "lanescope/view/crop_trace.h"
#include "lanescope/view/step_windows.h"

namespace lanescope::view {

// At most one of window and step.
struct PartAsked {
  std::string window = {};  // "A..B" as parse_window() takes it; empty: not asked
  std::optional<std::int64_t> step = {};
  std::string categories = {};  // as kept_categories() takes them; empty: all
  bool has_times() const { return !window.empty() || step.has_value(); }
  bool is_given() const { return has_times() || !categories.empty(); }
};

// Error messages begin with "window", "step" or "category", so that a caller can put dashes before the word.

// "A..B", since the origin of the trace (trace_origin_ns). Nothing: an empty text.
// kInvalidArgument: anything else.
Result<std::optional<TraceWindow>> parse_window(const std::string& text);
// What an earlier call noted about this very trace, and where to keep the note of this call
// (format/index_file/kept_sections.h).
struct StepNote {
  std::string_view known;                          // empty: nothing
  std::function<void(std::string_view)> remember;  // may be empty
};
// The window of a part that has_times(). Errors: parse_window(), window_of_step() and gather_facts(). A step costs O(n log n),
// with a note of steps_layer() O(steps).
Result<TraceWindow> find_part(const Trace& trace, const PartAsked& asked,
                              const StepNote& note = {});
// The part that is_given(). Errors: find_part(), kept_categories() and crop_trace().
Result<CroppedTrace> take_part(const Trace& whole, const PartAsked& asked, Edges edges,
                               const StepNote& note = {});

}  // namespace lanescope::view
