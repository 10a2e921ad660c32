// How much one kernel for each chain of element-wise kernels would save.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Nanoseconds of all steady steps, at most: what docs/rules/unfused-chain.md puts at stake, even where it is too little for the
// rule to report. 0: no chains, a program that waits for the CPU, or neither shapes nor grids are recorded. One pass over the
// GPU's work.
std::int64_t saved_by_one_kernel_for_each_chain_ns(const Facts& facts);

}  // namespace lanescope::explain::rules
