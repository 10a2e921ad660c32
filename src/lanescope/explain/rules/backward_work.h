// Removes from the pairs of operators and backward nodes what cannot be compared.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/rules/autograd_pairs.h"

namespace lanescope::explain::rules {

// For traces without a device, where a call may be long because the core had other work. Each call
// counts as the shortest of its equals: the calls of one operator with the same shapes and the same
// node. Erases equals if half of their forward calls take more than twice the shortest, unless the
// shortest backward part takes more than 20 times the median of the forward part. O(n log n).
void take_shortest_of_equals(const Facts& facts, std::vector<AutogradPair>& pairs);

// Erases the pairs whose nodes do more than the backward part of their operator: nodes with many
// gradients at once (torch.vmap, autograd.grad(is_grads_batched=True)). Without a device also nodes
// that call collectives (hooks of FSDP and DDP), because they may only wait. O(slices), if there are
// pairs.
void erase_other_work(const Facts& facts, std::vector<AutogradPair>& pairs);

}  // namespace lanescope::explain::rules
