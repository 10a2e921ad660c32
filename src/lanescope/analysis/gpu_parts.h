// The parts in which a recording with a budget recorded the GPU: the entry lanescope_gpu_parts. The
// trace is one of them, or lacks the GPU. docs/definitions/recording.md#budget.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

struct GpuParts {
  std::size_t count = 0;  // of the recording; 0: it ended before the budget paid for one
  // The trace's window, from the start of the recording.
  std::int64_t from_ns = 0, to_ns = 0;
};

// Nothing: recorded without such parts, or the entry cannot be understood. O(entry).
std::optional<GpuParts> find_gpu_parts(const Trace& trace);

}  // namespace lanescope::analysis
