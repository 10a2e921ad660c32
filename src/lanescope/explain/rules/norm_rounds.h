// Loops that compute the norm of one tensor after the other and read each on the CPU.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/analysis/steps.h"
#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct NormRounds {
  std::uint64_t rounds = 0;  // in the steady steps
  // The calls of all rounds but the first of each loop, in order.
  std::vector<SliceId> spared;
  // From the end of a loop's first round to its end, on the CPU; disjoint and in order on each thread.
  std::vector<analysis::Window> windows;
};

// Each round is aten::linalg_vector_norm (or another norm) and aten::item. Between these at most three calls, powers and views; after
// them at most three views. So no round computes what the next one takes. Loops of fewer than four rounds do not count. Made once for these Facts. O(calls).
const NormRounds& norm_rounds(const Facts& facts);

// What these rounds cost, in the steady steps: the work that they launch, and the GPU's idle time during the loops.
std::int64_t cost_of_norm_rounds(const Facts& facts, const NormRounds& rounds);

}  // namespace lanescope::explain::rules
