// Why a step of B takes another time than one of A, in words, for the headline of a comparison.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/compare.h"

namespace lanescope::explain {

// One reason for the difference: its time and its words.
struct Reason {
  std::int64_t delta_ns = 0;
  Sentence text;
  // Fewer but longer calls: what the longer calls add and the smaller number takes away again.
  std::int64_t hidden_ns = 0;
};

// Largest first. The times add up to the difference of the walls.
std::vector<Reason> reasons_of(const Comparison& c);

}  // namespace lanescope::explain
