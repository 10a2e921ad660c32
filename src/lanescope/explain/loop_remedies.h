// What to change about a loop of calls: the advice that its rounds suggest, whatever the operators are.
#pragma once
#include <cstdint>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/owners.h"

namespace lanescope::explain {

// Gradients that a step accumulates: as many as the parameters that it trains, once for each backward pass.
// 0: no backward pass was recorded. O(slices).
std::uint64_t gradients_of_a_step(const Facts& facts);

// Has the loop a round for each parameter? Then it has as many rounds as there are gradients, or one less where
// its first round differs, and no products. `gradients`: gradients_of_a_step().
bool is_over_parameters(const Facts& facts, const Owner& owner, std::uint64_t gradients);

// The rounds of one of the loops that are this owner.
std::uint64_t rounds_of(const Owner& owner);

// The loop of the backward pass that belongs to this one: as many rounds, of the nodes of autograd that its calls
// made (PowBackward0 of aten::pow). Null: none, or not among the largest owners.
const Owner* backward_of_loop(const Owners& owners, const Owner& owner);

// Each round of the loop takes a part of a tensor (aten::slice, aten::narrow or aten::select), and rounds are no layers of a
// model, whose weights differ: they have no products, or cells of a recurrent layer, or stacks show that they lie in no nn.Module.
bool takes_parts(const Facts& facts, const Owner& owner);

// What to do about a loop whose time is the CPU's. Empty: its rounds suggest nothing.
Sentence remedy_of_loop(const Facts& facts, const Owner& owner);

}  // namespace lanescope::explain
