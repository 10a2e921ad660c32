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

// A loop whose rounds differ in size and that holds most of the step; null: none. With other data its
// sizes are likely others, so a CUDA graph of this step may not fit the next.
const Owner* loop_of_changing_size(const Facts& facts);
// Where there is one, its remedy comes before that of launches in general.
void advise_about_sizes(const Facts& facts, Finding& finding);

}  // namespace lanescope::explain
