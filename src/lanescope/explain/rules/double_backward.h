// Programs that differentiate a backward pass (create_graph=True), which torch.compile does not support.
#pragma once
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// A node of autograd such as ThresholdBackwardBackward0 runs in a steady step. Found once, in O(slices).
bool differentiates_backward(const Facts& facts);

// What to do about launches in general in such a step.
Sentence graph_of_double_backward(const Facts& facts);

// Advice to torch.compile becomes advice that holds there too. `finding`: of any rule. Findings whose first event is in an optimizer,
// or in code that a backward pass goes through once, stay as they are.
void leave_out_compiling_of_backward(const Facts& facts, Finding& finding);

}  // namespace lanescope::explain::rules
