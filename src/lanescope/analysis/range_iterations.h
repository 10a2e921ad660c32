// Iterations by the ranges that a program opens itself, where they tell nearly all that it does.
#pragma once
#include <optional>

#include "lanescope/analysis/iteration_work.h"
#include "lanescope/analysis/iterations.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Problem: an optimizer may step many times in what the program calls an iteration, and a range
// "rollout" before these steps is then a pause between two of them. Idea: the outermost ranges of
// a thread, in order of time, are a text. If the text is one word again and again (rollout update
// rollout update), and nearly no time and no work lies outside of the ranges, each word is an
// iteration. The program named them, so two are enough.
// O(slices of the trace) for each thread. docs/definitions/steps.md#found-iterations
std::optional<Iterations> iterations_of_ranges(const Trace& trace, const Periods& periods,
                                               ProcessId process);

}  // namespace lanescope::analysis
