// Why a step of B is longer or shorter than one of A, in words, for the headline.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/compare.h"

namespace lanescope::explain {

// One reason for the difference: its time and its words.
struct Reason {
  std::int64_t delta_ns = 0;
  Sentence text;
  // For calls that became fewer but longer, or more but shorter: the time by which these two effects
  // cancel each other. `delta_ns` does not contain it.
  std::int64_t hidden_ns = 0;
};

// Largest first. The times add up to the difference of the walls.
std::vector<Reason> reasons_of(const Comparison& c);

}  // namespace lanescope::explain
