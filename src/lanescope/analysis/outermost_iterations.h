// Which of two loops is the iteration: the one that marks were found for, or the longer one around it.
#pragma once
#include <optional>
#include <string>

#include "lanescope/analysis/iterations.h"
#include "lanescope/analysis/nested_iterations.h"
#include "lanescope/analysis/operator_iterations.h"

namespace lanescope::analysis {

// Does a round hold more than steps of an optimizer: a game before them, copies of the model? An evaluation runs the model of the
// steps: they remain what is looked at, unless it takes most of the time.
bool has_phases(const Nest& nest);

// The rounds of the outermost loop, where `inner` are those of a loop inside; else `inner`, with what is known of the loops inside of
// them and around them. `only_step`: the name of the only step of an optimizer in the recording, or empty. O(slices).
std::optional<Iterations> choose_outermost(const IterationInput& input,
                                           const std::optional<Nest>& nest,
                                           std::optional<Iterations> inner, std::string only_step);

}  // namespace lanescope::analysis
