// Finds steps at the end that the recording has only in part; numbers per step leave them out.
#pragma once
#include "lanescope/explain/facts.h"

namespace lanescope::explain {

// Moves steps from the end of facts.steady to facts.cut_steps, docs/definitions/steps.md#cut-steps,
// while others are left; says in facts.is_cut when the last one left is not whole either. O(n).
void leave_out_cut_steps(Facts& facts);

// Is the end of the file missing?
bool is_truncated(const Trace& trace);

// "Steps 8 and 9 are left out: ...". If the steps that remain are incomplete too: what is missing.
// Empty pattern: nothing was left out or is missing.
Sentence cut_steps_note(const Facts& facts);

}  // namespace lanescope::explain
