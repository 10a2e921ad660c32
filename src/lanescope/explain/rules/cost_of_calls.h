// What calls of operators cost a step, with or without a GPU.
#pragma once
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// The cost of these calls in the steady steps (raw SliceIds, none inside another). With a GPU: the
// union of the work that they launched, plus the time in which the GPU was idle during them: at most those steps.
// Without: their own times. O(work x depth).
std::int64_t cost_of_calls(const Facts& facts, const std::unordered_set<std::uint32_t>& calls);
// The same of what a finding lists as spared_calls.
std::int64_t cost_of_spared(const Facts& facts, const std::vector<SliceId>& calls);

// Sets the time at stake per step, its share of the steady wall, confidence and samples.
void rate_cost(const Facts& facts, std::int64_t cost_ns, std::uint64_t calls, Finding& finding);

}  // namespace lanescope::explain::rules
