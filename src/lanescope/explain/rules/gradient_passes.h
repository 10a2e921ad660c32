// How many backward passes of the steady steps add to the gradients of parameters, and how many only return gradients.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// A pass is a row of nodes of autograd between two calls of the program.
struct GradientPasses {
  std::uint64_t adding = 0;  // with a node AccumulateGrad: backward()
  std::uint64_t inner = 0;   // without: torch.autograd.grad()
  // A penalty on gradients has one inner pass for each backward(); steps of tasks, as in meta learning, have many.
  bool are_of_tasks() const { return adding > 0 && inner >= 3 * adding; }
};

// Counted once for these Facts. O(slices x depth).
const GradientPasses& count_gradient_passes(const Facts& facts);

}  // namespace lanescope::explain::rules
