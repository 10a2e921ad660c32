// A recording's budget may end the records of allocations before the trace ends
// (docs/definitions/memory.md). Peaks and leaks after that moment are unknown, so no rule may say
// that there are none.
#pragma once
#include "lanescope/analysis/thinning.h"
#include "lanescope/explain/facts.h"

namespace lanescope::explain {

inline bool has_memory_to_the_end(const Facts& facts) {
  return !analysis::find_memory_end(*facts.trace);
}

// As NotChecked::missing and Unmeasured::missing.
inline constexpr const char* kMemoryToTheEnd =
    "memory records to the end (the recording's budget ended them: give it a larger one, or record "
    "fewer steps)";

}  // namespace lanescope::explain
