// Weights that autocast casts again in each round of a program that does not train, known without shapes.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct LayerCasts {
  std::vector<SliceId> calls;  // aten::to of a weight or a bias, of all rounds
  std::uint64_t rounds = 0;    // marked steps, or passes that begin with a lookup of indices
  std::uint64_t casts = 0;     // of one round
  bool are_steps = false;
  std::string_view to;  // "bfloat16"
};

// Nothing: a backward pass was recorded, rounds are not known, or the type is not. O(n).
std::optional<LayerCasts> find_layer_casts(const Facts& facts);

}  // namespace lanescope::explain::rules
