// Functions of the program whose results may be kept with a matrix that does not change.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// The program's operators in the innermost Python function of the program around this call, itself among them, in order. Empty: no
// frames are recorded; or the function has a layer of a model, or a call that made a node of the backward pass, so that
// its result depends on parameters.
std::vector<SliceId> calls_of_kept_function(const Facts& facts, SliceId op);

}  // namespace lanescope::explain::rules
