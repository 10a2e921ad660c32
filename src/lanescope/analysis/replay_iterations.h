// Iterations by replays of CUDA graphs, where nothing else marks them: the tokens of a decoder.
#pragma once
#include <cstddef>
#include <optional>

#include "lanescope/analysis/iterations.h"
#include "lanescope/analysis/operator_iterations.h"

namespace lanescope::analysis {

// From one replay to the next, if each holds the same work in the same order; from every n-th to the next, if n replays do different
// work in turn. At least nine replays and three iterations. The last replay only ends them, because nothing shows where its
// iteration ends. Graphs of a model's layers repeat too, but around them there is more: the work before the first replay and after
// the last one must be less than a tenth of an iteration's. What comes `too_many` times or more is not tried. O(slices) for each
// thread with as many replays.
std::optional<Iterations> iterations_of_replays(const IterationInput& input, std::size_t too_many);

}  // namespace lanescope::analysis
