// Counts what owners did in the steady steps, apart from the critical path; for owners.cpp.
#pragma once
#include <functional>

#include "lanescope/explain/call_tree.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/owners.h"

namespace lanescope::explain {

// The owner that an event belongs to; null: none.
using FindOwner = std::function<Owner*(SliceId)>;

// Fills in the OwnerWork of the owners. One pass over the slices, and O(n log n) for equal kernels.
void count_owner_work(const Facts& facts, const CallTree& tree, const FindOwner& owner_of);

}  // namespace lanescope::explain
