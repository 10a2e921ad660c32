// What the rounds of an owner show, in words; for owner_words.cpp.
#pragma once
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/owners.h"

namespace lanescope::explain {

// Begins with "; " and names one of these: a size that changes from round to round, a backward pass
// that is differentiated, copies between layouts, calls much longer than equal ones. Empty: none.
Sentence more_of_rounds(const Facts& facts, const Owner& owner);

// A call of each round is aten::select, aten::slice or aten::narrow.
bool takes_part_of_tensor(const Owner& owner);

// Each round takes a part of a tensor, as the first of what is left, and asks the GPU how many elements a mask has; no round has layers of a model, and no shapes were recorded that would show
// whether it goes on with those elements.
bool may_narrow_by_mask(const Facts& facts, const Owner& owner);

// Micro batches: each round has a forward pass and a backward pass that adds to gradients, and an optimizer steps once for all rounds.
bool accumulates_gradients(const Facts& facts, const Owner& owner);

// What to change about such rounds; empty: they suggest nothing.
Sentence remedy_of_rounds(const Facts& facts, const Owner& owner);

// Before PyTorch 1.12, traces called operators "Operator", and optimizers had no foreach=True; fused=True came later still. O(categories).
bool is_before_foreach(const Trace& trace);

// A loop whose rounds differ in size and that holds most of the step; null: none. With other data
// the sizes likely change, so a CUDA graph of this step may not fit the next one.
const Owner* loop_of_changing_size(const Facts& facts);
// If there is such a loop, puts its remedy before the general one for launches.
void advise_about_sizes(const Facts& facts, Finding& finding);

}  // namespace lanescope::explain
