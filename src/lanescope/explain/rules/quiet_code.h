// Stretches in which a thread is in no operator, no call and no Python of torch: Python or other code of the program's own.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Python between two operators takes 5 to 50 us, with a profiler: longer code does something of its own.
inline constexpr std::int64_t kLongestBetweenOperatorsNs = 100'000;

struct QuietCode {
  std::int64_t time_ns = 0;  // in all
  std::int64_t usual_ns =
      0;  // of the median steady step, times the steps: without what one step has alone
  std::int64_t longest_ns = 0;
  SliceId longest_frame = kNone<SliceId>;  // the innermost event for most of it; kNone: no event
};

// The parts of these stretches between two operators or calls that are longer than kLongestBetweenOperatorsNs, without
// torch's own Python in it. O(events in them).
QuietCode quiet_code(const Facts& facts, const std::vector<HostStretch>& stretches);

}  // namespace lanescope::explain::rules
