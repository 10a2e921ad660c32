// Shares, and sums in words.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// "idle {} + busy {}": the terms that are not zero, in order; the first one when all are.
struct Term {
  std::string words;
  std::int64_t time_ns = 0;
};
Sentence sum_of(const std::vector<Term>& terms);

// 0 to 1; 0 if the whole is 0 or less.
double share_of(std::int64_t part, std::int64_t whole);

}  // namespace lanescope::explain::rules
