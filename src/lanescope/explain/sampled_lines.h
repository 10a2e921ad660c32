// Finds the line of a sampled function that most of its samples show.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "lanescope/analysis/steps.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain {

// kAll: all slices of the function count. kInnermost: only slices in which the function was the
// innermost one of at least one sample.
enum class Counted : std::uint8_t { kInnermost, kAll };
// The function's most frequent line in samples whose slices overlap the stretches. Nothing: there
// are none. O(slices).
std::optional<std::int64_t> main_line(const Trace& trace, StringId function,
                                      std::span<const analysis::Window> stretches, Counted counted);

}  // namespace lanescope::explain
