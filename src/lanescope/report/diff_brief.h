// A comparison in short, for a first look: one sentence, the parts that make the difference, and
// how sure it is.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/explain/compare.h"

namespace lanescope::report {

struct DiffBrief {
  // "A step takes 592 us in B and 613 us in A: 3.4 % less."
  std::string verdict;
  struct Part {
    std::int64_t delta_ns = 0;  // B minus A, per step
    std::string text;
  };
  // Largest first, at most five, each a tenth of the difference or more. If the steps agree: the
  // parts that differ by more than the variation of the steps and a twentieth of the wall.
  std::vector<Part> parts;
  // "Only 2 steps of A and 2 of B: too few to show how much steps vary."; may be empty.
  std::string caution;
};

DiffBrief diff_brief(const explain::Comparison& comparison);

}  // namespace lanescope::report
