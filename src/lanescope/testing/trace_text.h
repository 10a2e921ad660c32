// A Trace as text, to compare two of them and read what differs.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/model/trace.h"

namespace lanescope::testing {

// One line per slice, instant, counter value, arrow, label and top-level entry. Tracks have their
// names, not numbers; slices of a track are in order. Event numbers and ids are left out, so Traces
// with the same content have equal texts. The argument `left_out` is left out, too.
std::string trace_text(const Trace& trace, std::string_view left_out = {});

}  // namespace lanescope::testing
