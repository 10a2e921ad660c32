// The backward passes of the steady steps: their nodes, and the gradients that they add to parameters.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct BackwardPass {
  std::size_t step = 0;
  std::uint32_t thread = 0;
  std::vector<SliceId> nodes;  // in order
  // Gradients of parameters, in order: the index of the node that made it, and its shape. Empty without shapes.
  std::vector<std::pair<std::size_t, analysis::Sizes>> gradients;
};

// In order of their first nodes. The engine runs the newest node that is ready, so sequence numbers
// fall within a pass; a larger one begins the next. O(n).
const std::vector<BackwardPass>& backward_passes(const Facts& facts);

// The nodes of a pass that accumulate a gradient of a parameter, and those of them that add to a gradient that is there (the others
// make a new one). In order, as indices of `nodes`. Needs no shapes.
struct Accumulated {
  std::vector<std::size_t> all, added;
};
Accumulated accumulated_in(const Facts& facts, const BackwardPass& pass);

// True: a zero_grad() fills gradients with zeros instead of setting them to None.
bool clears_by_zeros(const Facts& facts);

// The recorded shape of a call's first input: one, or one for each tensor of a list.
std::vector<analysis::Sizes> first_input_shapes(const Trace& trace, SliceId op);

// The recorded shapes of all inputs that are tensors, not those in lists.
std::vector<analysis::Sizes> input_shapes(const Trace& trace, SliceId op);

// Has the trace collectives? Then each rank may update a part of the parameters.
bool has_collectives(const Facts& facts);

}  // namespace lanescope::explain::rules
