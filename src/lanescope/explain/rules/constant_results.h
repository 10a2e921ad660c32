// Results that are computed from constants only, without any tensor of the program.
//
// Problem: each layer makes a table of positions or sines, or a mask, again. That costs launches
// and memory traffic, and no single operator shows it. Idea: start at an operator that makes a
// tensor out of numbers, and follow the thread's operators. While each tensor that one takes has
// the shape of one that was just made, its result depends on nothing else. Example: arange(64), to,
// mul, sin; then add([8, 64], [64]) takes a tensor that was not made here, so the run ends before
// it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct ConstantRun {
  std::vector<SliceId> calls;  // operators of the program, neighbours on one thread, in order
  std::size_t step = 0;        // the steady step
  // One of the inputs is a whole number whose value is not recorded; it may be a counter.
  bool has_counter = false;
  // Equal for runs of equal operators with equal shapes, types and recorded arguments.
  std::vector<std::uint32_t> symbol;
};

// The runs of the steady steps, in order of thread and time. Left out are runs that only make or
// fill tensors, because these may be filled with something else later. Empty: shapes or arguments
// are not recorded. O(operators); at most 256 operators in a run.
std::vector<ConstantRun> constant_runs(const Facts& facts);

}  // namespace lanescope::explain::rules
