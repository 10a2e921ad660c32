// How much one kernel for each chain of element-wise kernels would save.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Nanoseconds of all steady steps, at most: what docs/rules/unfused-chain.md puts at stake, even where it is too little for the
// rule to report. 0: no chains, a program that waits for the CPU, or neither shapes nor grids are recorded. One pass over the
// GPU's work.
std::int64_t saved_by_one_kernel_for_each_chain_ns(const Facts& facts);

// For `whatif --change 'fuse CHAIN'`.
struct FusableChain {
  std::string text;           // its operators, as explain prints them: "mul, add, tanh"
  std::int64_t saved_ns = 0;  // by one kernel for each, at most, of all steady steps
  std::vector<std::vector<SliceId>> kernels;  // of each such chain, in order of time
};

// Most to save first, which is the order in which explain prints them. Empty: none, or the trace does not hold what the rule
// unfused-chain needs. O(n).
std::vector<FusableChain> fusable_chains(const Facts& facts);

}  // namespace lanescope::explain::rules
