// Whether a larger batch may be advised: only a program that works on a batch can have one.
#pragma once
#include <string>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// Does the program work on a batch that could be larger? It calls layers of a model, trains products, or takes batches of a
// DataLoader. Products alone count, too, unless the program solves or factorises matrices: then the problem decides their sizes.
// A trace without operators counts by its kernels. False: a simulation, say. O(slices), once.
bool works_on_batch(const Facts& facts);

// Takes the advice of a larger batch out of a sentence or a line; the rest stays.
void leave_out_batch(std::string& advice);
void leave_out_batch(Finding& finding);

}  // namespace lanescope::explain::rules
