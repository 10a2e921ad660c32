// Functions that torch.compiler.disable keeps out of compiled code.
#pragma once
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// The frame of the program's own function around this operator, or of one that calls it, that compiled code calls through
// Dynamo's wrapper; kNone: there is none, or frames are not recorded. O(slices of the thread).
SliceId left_out_function(const Facts& facts, SliceId op);

// Replaces the advice to compile such a function, which would change nothing. `example`: an operator that the advice is about.
// False: there is no such function.
bool advise_on_left_out(const Facts& facts, SliceId example, Finding& finding);

}  // namespace lanescope::explain::rules
