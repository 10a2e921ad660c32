// Loops over the rows of a tensor whose results are stacked again: what one call for all rows could replace.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// From aten::unbind (Python's `for row in x`), or the first of as many aten::select, to the aten::stack or aten::cat of as many
// results, on one thread in one steady step.
struct StackedRows {
  std::uint64_t rows = 0;
  analysis::Window window;  // of the CPU
  SliceId stack{};
};

// With eight rows or more, and three operators or more for each. Needs shapes. Found once for these Facts. O(operators).
const std::vector<StackedRows>& stacked_rows(const Facts& facts);

// The loop around most of the pieces of GPU work of the steady steps; null: there is none.
const StackedRows* rows_of_most_work(const Facts& facts);

}  // namespace lanescope::explain::rules
