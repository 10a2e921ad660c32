// Adds the capture windows of a recording as rows of its trace.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "lanescope/format/spool/spool_windows.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// One span per window, and the two marks that Kineto's readers search. `time_ns`: the time
// of a tick.
void add_window_spans(TraceBuilder& builder, const SpoolWindows& windows,
                      const std::function<std::optional<std::int64_t>(std::uint64_t)>& time_ns);

}  // namespace lanescope::format
