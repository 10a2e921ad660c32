// The lines at which a sampled function was.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "lanescope/analysis/steps.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain {

// The line at which a function was most often, in slices that overlap the stretches: in all of
// them, or only in those in which it was the innermost function of a sample. O(slices).
enum class Counted : std::uint8_t { kInnermost, kAll };
std::optional<std::int64_t> main_line(const Trace& trace, StringId function,
                                      std::span<const analysis::Window> stretches, Counted counted);

}  // namespace lanescope::explain
