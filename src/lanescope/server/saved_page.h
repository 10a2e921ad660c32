// A part of a trace as one HTML file that opens from disk and needs nothing else.
// docs/formats/view_api.md#saved-page
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/server/answers.h"
#include "lanescope/server/trace_state.h"

namespace lanescope::server {

inline constexpr std::size_t kMostSavedSlices = 2'000'000;

// The slices that touch [start_ns, end_ns), in nanoseconds of the trace. kLimit: more than
// kMostSavedSlices; kUnavailable: this program has no page. O(slices in the range).
Answer saved_page(const TraceState& state, const Span& span, std::string_view version);

// What `lanescope view --html` saves without a range: all of a small trace, else the step of median
// length, else the beginning.
Span usual_saved_span(const TraceState& state);

}  // namespace lanescope::server
