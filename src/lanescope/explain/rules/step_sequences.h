// What each steady step launches, to tell whether steps do the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct StepSequence {
  std::vector<std::pair<std::int64_t, std::uint64_t>> works;  // launch start, what
  std::vector<SliceId> slices;                                // in the same order, once sorted
  analysis::Window launches{0, 0};  // first launch's start, last one's end
};

// What each steady step launched, in order of launch: name, grid, block and bytes of each piece. Needs a main device. O(n log n).
std::vector<StepSequence> step_sequences(const Facts& facts);

// The first piece that differs; the length of the shorter one: none does up to there.
std::size_t first_difference(const StepSequence& a, const StepSequence& b);

// Every step launches something, and all the same: shapes repeat. False: fewer than two steps.
bool launch_the_same(const std::vector<StepSequence>& steps);

}  // namespace lanescope::explain::rules
