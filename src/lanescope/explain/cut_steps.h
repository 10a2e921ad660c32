// Steps at the end of a recording that it does not hold as a whole: numbers per step leave them
// out.
#pragma once
#include "lanescope/explain/facts.h"

namespace lanescope::explain {

// Moves steps from the end of facts.steady to facts.cut_steps, docs/definitions/steps.md#cut-steps,
// while others are left; says in facts.is_cut when the last one left is not whole either. O(n).
void leave_out_cut_steps(Facts& facts);

// Is the end of the file missing?
bool is_truncated(const Trace& trace);

// "Steps 8 and 9 are left out: ..."; an empty pattern: none are. Of a recording or a chosen step
// that is not whole, what is missing.
Sentence cut_steps_note(const Facts& facts);

}  // namespace lanescope::explain
