// Whether a larger batch may be advised: only a program that works on a batch can have one.
#pragma once
#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Does the program work on a batch that could be larger? It calls layers of a model, trains products, or takes batches of a
// DataLoader. Products alone count, too, unless the program solves or factorises matrices: then the problem decides their sizes.
// A trace without operators counts by its kernels. False: a simulation, say. O(slices), once.
bool works_on_batch(const Facts& facts);

}  // namespace lanescope::explain::rules
