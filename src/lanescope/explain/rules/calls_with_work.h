// The GPU work that was launched inside given calls of operators.
#pragma once
#include <cstdint>
#include <unordered_set>

#include "lanescope/explain/kernel_facts.h"

namespace lanescope::explain::rules {

// All work of the steady steps that one of these calls (raw SliceIds), or an operator in it,
// launched; each piece saves its whole time. O(work x depth).
Savings work_in_calls(const Facts& facts, const std::unordered_set<std::uint32_t>& calls);

// Sets time at stake and confidence from that work. It is a cost even if the step waits for the
// CPU, because the launches go with the calls.
void rate_calls(const Facts& facts, const Savings& work, Finding& finding);

}  // namespace lanescope::explain::rules
