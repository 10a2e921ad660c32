// The headline of a comparison, and the numbers that decide it.
#pragma once
#include <cstdint>

#include "lanescope/explain/compare.h"

namespace lanescope::explain {

// Needs scope, verdict, spreads and effects of the comparison.
Sentence compare_headline(const Comparison& comparison);

// The largest difference of medians that does not count: the larger of 1 % of A's median and twice
// the root of the sum of the squares of both spreads.
std::int64_t compare_noise_ns(const Comparison& comparison);

// The mean wall of a step: on the device, or on the CPU if one side has no GPU work.
std::int64_t compare_wall_ns(const Comparison& comparison, bool of_a);

// What a step of the trace is: "20 x Optimizer.step#Adam.step", "what prof.step() marks".
Sentence step_unit(const Facts& facts);

}  // namespace lanescope::explain
