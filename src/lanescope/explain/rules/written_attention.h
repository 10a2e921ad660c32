// Attention that a program writes out itself: a batched product, a softmax of its result, and a product with the values.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct WrittenAttention {
  SliceId softmax{};
  // Calls between the two products that work on the scores: scaling, mask, casts, softmax, dropout.
  std::vector<SliceId> on_scores;
  bool has_mask = false;  // something is added to the scores or fills a part of them
};

// Those of the steady steps, in order of thread and time. Goes by the names of the operators of one caller, and by their recorded
// shapes where the trace has them. A softmax of a product that is not batched, of a layer (aten::linear) or for one query is none,
// and so is one whose weights another operator takes before the second product. O(slices).
std::vector<WrittenAttention> written_attention(const Facts& facts);

}  // namespace lanescope::explain::rules
