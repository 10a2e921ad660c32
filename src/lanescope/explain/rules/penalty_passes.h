// What a penalty on gradients costs where two networks train in turns: the passes that are differentiated, and what runs for them.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Runs of autograd's nodes, in order of their SliceIds, that a step without the penalty does not need: of nodes that a backward pass
// made, of passes that only return gradients, and the later runs of these passes' nodes. Where the output may have another use, one
// run of each node stays.
// Empty: no penalty is known. An optimizer of each steady step must step after such a pass, and another one, or the same one
// again, after a backward pass without it: the step needs no second derivatives there. O(slices x depth).
std::vector<SliceId> runs_of_gradient_penalty(const Facts& facts);

}  // namespace lanescope::explain::rules
