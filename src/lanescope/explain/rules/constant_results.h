// Results that are computed from constants only: no tensor of the program goes into them.
//
// Problem: a table of positions, of sines, or a mask that each layer makes again costs launches and memory
// traffic, and no look at one operator shows that. Idea: follow a thread's operators in order, from one
// that makes a tensor out of numbers. While each tensor that an operator takes has the shape of one that
// was just made, its result depends on nothing else. Example: arange(64), to, mul, sin; then
// add([8, 64], [64]) takes a tensor that nobody made here, so the run ends before it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct ConstantRun {
  std::vector<SliceId> calls;  // operators of the program, neighbours on one thread, in order
  std::size_t step = 0;        // the steady step
  // A whole number goes in whose value is not recorded: it may be a counter.
  bool has_counter = false;
  // Equal for runs of equal operators with equal shapes, types and recorded arguments.
  std::vector<std::uint32_t> symbol;
};

// Of the steady steps, in order of thread and time. Left out are runs that only make or fill tensors:
// those may be filled with something else later. Empty: shapes or arguments are not recorded.
// O(operators); at most 256 operators in a run.
std::vector<ConstantRun> constant_runs(const Facts& facts);

}  // namespace lanescope::explain::rules
