// A part of a trace as a trace of its own: for questions about one piece of time, and for tools that
// cannot open all of it. Defined in docs/definitions/reading.md#a-part-of-a-trace.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"
#include "lanescope/view/step_windows.h"

namespace lanescope::view {

// How much of a slice counts that reaches beyond an end of the window.
enum class Edges : std::uint8_t {
  kWhole,  // they are whole: for pictures and for other tools
  kCut,    // only their part within the window counts: for numbers
};

struct CroppedTrace {
  Trace trace;
  std::uint64_t crossing = 0;  // slices that reach beyond an end of the window
};

// Keeps slices that touch [start_ns, end_ns); instants and counter values in it; arrows with both
// ends in it; steps that are not cut; all metadata and import issues. Times and places in the file
// stay as they are. For slices outside it reads only starts, and before the window also lengths.
// kLimit: as TraceBuilder::finish().
Result<CroppedTrace> crop_trace(const Trace& trace, std::int64_t start_ns, std::int64_t end_ns,
                                Edges edges);

// What is kept of a trace: of all times, or of those in `window`, by CategoryId slices and instants of the categories that
// `kept` has (kept_categories.h); arrows with both ends in such slices; steps whose slices are kept; no counter values. Of other
// slices it reads what crop_trace() reads, and categories. Without `window`, the capture window stays.
Result<CroppedTrace> crop_categories(const Trace& trace, const std::vector<bool>& kept,
                                     const std::optional<TraceWindow>& window, Edges edges);

// What analyses of one step need, with whole slices. The capture window stays that of the whole trace.
struct StepTrace {
  Trace trace;
  std::vector<SliceId> originals;  // of each slice, its id in the whole trace
};
// `needs` are known (step_needs.h). Cost and errors as crop_trace().
Result<StepTrace> crop_step(const Trace& trace, const StepNeeds& needs);

// Where times that people type begin: the first slice, counter value or [memory] event. 0: there is
// none of these. O(tracks + counters).
std::int64_t trace_origin_ns(const Trace& trace);
// The last end of a slice or time of a counter value; trace_origin_ns() if there is none. O(slices).
std::int64_t trace_end_ns(const Trace& trace);

}  // namespace lanescope::view
