// Sentences about steps that numbers per step leave out.
#pragma once
#include "lanescope/explain/facts.h"

namespace lanescope::explain {

// "Steps 8 and 9 are left out: ...". If the steps that remain are incomplete too: what is missing.
// Empty pattern: no step was cut, nothing is missing.
Sentence cut_steps_note(const Facts& facts);

// "Step 5 took 12 ms, longer than the other 8 together, and is left out." Empty pattern: no step
// is so long.
Sentence long_step_note(const Facts& facts);

}  // namespace lanescope::explain
