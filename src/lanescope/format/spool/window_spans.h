// The capture windows of a recording as rows of its trace.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "lanescope/format/spool/spool_windows.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// One span a window, and the two marks that Kineto's readers look for. `time_ns`: of a tick.
void add_window_spans(TraceBuilder& builder, const SpoolWindows& windows,
                      const std::function<std::optional<std::int64_t>(std::uint64_t)>& time_ns);

}  // namespace lanescope::format
