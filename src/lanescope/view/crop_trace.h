// A part of a trace as a trace of its own, for tools that cannot open all of it.
#pragma once
#include <cstdint>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::view {

// Slices that touch [start_ns, end_ns), whole; instants and counter values in it; arrows with both
// ends in it; all metadata. Times stay as they are. O(n). kLimit: as TraceBuilder::finish().
Result<Trace> crop_trace(const Trace& trace, std::int64_t start_ns, std::int64_t end_ns);

}  // namespace lanescope::view
