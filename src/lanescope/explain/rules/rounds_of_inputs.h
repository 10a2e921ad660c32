// Loops over inputs: each round uploads one of them, and the model runs for it alone.
#pragma once
#include <cstddef>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// How many iterations that were found (Steps::found) take an input of their own; 0: not nine tenths of them, or the program trains. Such
// an iteration first copies a view of a tensor to the GPU, such as a row of it. No operator computes that tensor after the last
// GPU work or read of the iteration before. A result that is kept on the GPU from round to round is not seen. O(slices), once.
std::size_t rounds_of_inputs(const Facts& facts);

// "If no round needs another's result: one call for a batch of all 32 inputs; else " before this action; without such rounds
// the action alone.
Sentence after_one_call_for_all(const Facts& facts, Sentence action);

}  // namespace lanescope::explain::rules
