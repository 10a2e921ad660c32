// The steps of torch.profiler: ranges of the CPU with the name "ProfilerStep#N".
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lanescope {

class TraceBuilder;

// N of "ProfilerStep#N". Nothing: another name.
std::optional<std::int64_t> profiler_step_number(std::string_view name);

// Adds a step for each such slice on a thread. For importers of formats that mark steps in this
// way; call it once, after the last slice. One pass over the slices.
void add_profiler_steps(TraceBuilder& builder);

}  // namespace lanescope
