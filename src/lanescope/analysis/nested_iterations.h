// The rounds of the outermost loop that a recording holds twice or more, and the loops inside of a round.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/analysis/iterations.h"
#include "lanescope/analysis/operator_iterations.h"

namespace lanescope::analysis {

// docs/definitions/steps.md#nests.
struct Nest {
  Iterations iterations;            // two or more: a round each
  std::size_t optimizer_steps = 0;  // of each round
  // With two optimizer steps or more, of a middle round: how much of its time exceeds usual periods from one step to the next, and
  // which part of the operators that exceed them is in no stretch of four that a usual period has.
  double part_of_other_time = 0, part_of_new_operators = 0;
  bool is_all = false;  // next to nothing lies before the first round and after the last one
  bool has_exchanges =
      false;  // in each round the CPU waits for the GPU, or copies from it or to it
};

// Idea: the operators of the program's thread are one text. A loop whose rounds are alike gives it a period: each operator equals
// the one a period later. A loop inside has a period as well, but only within one round of the outer loop. So the shortest period
// that holds nearly as much of the text as any other is that of the outermost loop with two rounds or more. O(slices).
std::optional<Nest> find_nest(const IterationInput& input);

// The loops of three rounds or more inside of a middle iteration, the longest first: two at most, each with a tenth of it or more. The
// steps of an optimizer come first, with what lies between them. O(slices).
std::vector<InnerLoop> find_inner_loops(const IterationInput& input, const Iterations& iterations);

// Iterations::before. O(slices).
InnerLoop find_phase_before(const IterationInput& input, const Iterations& iterations);

}  // namespace lanescope::analysis
