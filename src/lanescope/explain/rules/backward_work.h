// What a pair of an operator and its backward nodes is compared without.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/rules/autograd_pairs.h"

namespace lanescope::explain::rules {

// For traces without a device: a call may be long because the core had other work. Each counts as the
// shortest of its equals: the calls of one operator with the same shapes and the same node. Erases
// those of which half of the forward calls take more than twice the shortest. O(n log n).
void take_shortest_of_equals(const Facts& facts, std::vector<AutogradPair>& pairs);

// Erases the pairs whose nodes do more than their operator's backward part: those that take many
// gradients at once (torch.vmap, autograd.grad(is_grads_batched=True)), and without a device those in
// which collectives are called (hooks of FSDP and DDP), which may only wait. O(slices), if there are pairs.
void erase_other_work(const Facts& facts, std::vector<AutogradPair>& pairs);

}  // namespace lanescope::explain::rules
