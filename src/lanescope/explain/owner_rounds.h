// What equal and unequal rounds of an owner say of it, in words; for owner_words.cpp.
#pragma once
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/owners.h"

namespace lanescope::explain {

// Begins with "; ": a size that changes from round to round, a backward pass that is differentiated,
// copies between layouts, equal calls that took much longer than others. Empty: nothing of this.
Sentence more_of_rounds(const Facts& facts, const Owner& owner);

// What to change about such rounds; empty: nothing that they tell.
Sentence remedy_of_rounds(const Facts& facts, const Owner& owner);

}  // namespace lanescope::explain
