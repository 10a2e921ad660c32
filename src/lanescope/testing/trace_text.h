// A Trace as text, for comparing two of them and for reading what differs.
#pragma once
#include <string>

#include "lanescope/model/trace.h"

namespace lanescope::testing {

// One line a slice, instant, counter value, arrow, label and top-level entry; tracks by their own
// names and not by number, slices of a track in their order. Two Traces with equal text say the
// same; numbers of events and ids are left out.
std::string trace_text(const Trace& trace);

}  // namespace lanescope::testing
