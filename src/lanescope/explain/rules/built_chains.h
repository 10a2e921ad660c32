// Tensors that a thread makes out of numbers on the CPU and then copies to the GPU.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// What makes one tensor or more, and the operators that copy these to the GPU. Both in order, of one thread and step.
struct BuiltChain {
  std::vector<SliceId> makers, copies;
  std::int64_t bytes = 0;   // of all copies
  std::int64_t end_ns = 0;  // of the last copy, on the CPU or the GPU
  // Makes numbers that differ from each other (aten::arange, aten::triu), rather than a tensor to be filled later; and numbers that
  // are others each time.
  bool is_table = false, is_random = false;
};

// Of the steady steps, by thread and time. Needs a main device. Found once, in O(slices x depth).
const std::vector<BuiltChain>& built_chains(const Facts& facts);

}  // namespace lanescope::explain::rules
