// Converts counts and times of all steady steps, or of all calls, to those of one step or one call.
#pragma once
#include <algorithm>
#include <cstdint>

#include "lanescope/explain/facts.h"

namespace lanescope::explain {

inline std::uint64_t step_count(const Facts& facts) {
  return std::max<std::uint64_t>(1, facts.selection.steady.size());
}

// A count over all steady steps, divided by the number of steps: rounded, at least 1.
inline std::uint64_t a_step(const Facts& facts, std::uint64_t total) {
  const std::uint64_t steps = step_count(facts);
  return std::max<std::uint64_t>(1, (total + steps / 2) / steps);
}

// 0 if there are no calls.
inline std::int64_t mean(std::int64_t total_ns, std::uint64_t calls) {
  return calls == 0 ? 0 : total_ns / static_cast<std::int64_t>(calls);
}

inline bool is_most(std::int64_t part, std::int64_t whole) { return part * 2 > whole; }

}  // namespace lanescope::explain
