// Iterations by operators that come again and again, where no range and no wait marks them.
#pragma once
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/iteration_work.h"
#include "lanescope/analysis/iterations.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// What iterations are found in.
struct IterationInput {
  const Trace& trace;
  const LaunchLinks& links;
  const SliceNesting& nesting;
  const Periods& periods;
  ProcessId process;  // kNone: any
};

// The outermost operator around a call; kNone: there is none.
SliceId outermost_operator_of(const IterationInput& input, SliceId call);

// "round of 75 operators (aten::select, aten::copy_, ...)": those from `first` on.
std::string name_of_round(const Trace& trace, const std::vector<SliceId>& operators,
                          std::size_t first, std::size_t size);

// A model's layers repeat too. So operators that repeat make iterations only if next to nothing lies
// outside of them, as embeddings and a head lie outside of layers, or if each of them exchanges data
// with the CPU. Where no operator begins each of them, rounds of equal operators are looked for, with few others between two.
// What comes `too_many` times or more is not tried.
std::optional<Iterations> iterations_of_operators(
    const IterationInput& input, std::size_t too_many = std::numeric_limits<std::size_t>::max());

// A program that was recorded for two of its calls or more leaves one text of outermost operators, two times or more, from the
// first to the last: requests of a server, each with a loop over words in it. Only names count, because kernels may differ from
// request to request. Each text exchanges data with the CPU, and next to no work lies outside: a model's layers, recorded alone,
// are no iterations. O(slices).
std::optional<Iterations> iterations_of_whole_texts(const IterationInput& input);

}  // namespace lanescope::analysis
