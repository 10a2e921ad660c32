// The first line of a comparison.
#pragma once
#include <cstdint>

#include "lanescope/explain/compare.h"

namespace lanescope::explain {

// From scope, verdict, spreads and effects, which must be set.
Sentence compare_headline(const Comparison& comparison);

// Differences of medians up to this are the steps' own variation: the larger of 1 % of A's median
// and twice the root of the sum of both spreads' squares.
std::int64_t compare_noise_ns(const Comparison& comparison);

// The mean wall of a step: on the device, or of the CPU where one side has no GPU work.
std::int64_t compare_wall_ns(const Comparison& comparison, bool of_a);

}  // namespace lanescope::explain
