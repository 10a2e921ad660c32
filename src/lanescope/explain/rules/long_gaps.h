// Gaps of the GPU that are too long for the launch of the next work.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct LongGaps {
  std::uint64_t gap_count = 0;
  std::int64_t waiting_ns = 0;
  const analysis::Gap* longest = nullptr;
  bool is_launching = false;  // in most of that time the CPU is inside operators that launch work
};

// In the steady steps. The facts must have a main device. O(gaps + events of the launching threads).
LongGaps find_long_gaps(const Facts& facts);

}  // namespace lanescope::explain::rules
