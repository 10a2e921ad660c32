// Whether a larger batch may be advised: only a program that works on a batch can have one.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Does the program work on a batch that could be larger? It calls layers of a model, trains products, or takes batches of a
// DataLoader. Products alone count, too, unless the program solves or factorises matrices: then the problem decides their sizes.
// A trace without operators counts by its kernels. Only steady steps count, if there are any: layers of another part of the program
// have no batch for the steps. False: a simulation, say. O(slices), once.
bool works_on_batch(const Facts& facts);

// The allocator held more than nine tenths of the GPU's memory. False also if the trace does not show it.
bool is_memory_nearly_full(const Facts& facts);

// Does the trace show that a larger batch would give this operator more rows, and that the batch could grow? True if all of this
// holds: the program works on a batch; the GPU's memory is not nearly full; the operator's shapes are recorded, and it has few rows
// (below 4,096) or pictures (below 64); without training, it has more than one sample, because nobody knows whether requests can be
// joined. A gradient of a weight has as many rows with any batch.
bool batch_could_grow(const Facts& facts, SliceId op);
// The same for a call with so many samples, whatever its rows.
bool batch_could_grow(const Facts& facts, std::int64_t samples);

}  // namespace lanescope::explain::rules
