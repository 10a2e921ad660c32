// The place in the program that a slice comes from, for those who have no Facts.
#pragma once
#include <span>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain {

// As user_code() of a slice of a CPU thread. `outward`: the slice itself, its parent and so on; empty:
// the sentence is empty.
Sentence code_of_slice(const FramesAround& frames, std::span<const SliceId> outward,
                       PlaceDetail detail = PlaceDetail::kOperators);

// The slice itself, its parent and so on.
std::vector<SliceId> outward_from(const Facts& facts, SliceId slice);

}  // namespace lanescope::explain
