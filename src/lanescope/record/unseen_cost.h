// What a callback cannot see of its own cost: the call, its first and last instructions, and the
// cache lines and branch predictions that the program loses to it. The numbers come from whole
// loops with and without a recording, less what the callbacks measured themselves
// (bench/seen_cost.py). The part that depends most on the torch version and the machine is measured
// in each process instead (record_torch/torch_cost.h).
#pragma once
#include <cstdint>

#include "lanescope/record/record_abi.h"

namespace lanescope::record {

// ns of one call, rounded up. docs/measurements/recording_and_reading.md.
constexpr std::uint64_t unseen_ns(LanescopeCostKind kind) noexcept {
  switch (kind) {
    case kLanescopeOperators:
      return 35;
    case kLanescopeFrames:  // what Python does around each event
      return 150;
    case kLanescopeRanges:
      return 0;  // seen as too much: a measured call also counts two reads of the tick counter
    case kLanescopeMemory:
      return 25;
    case kLanescopeGpuCalls:  // CUPTI's part, of which half belongs to each of begin and end
      return 1'000;
    case kLanescopeCostKinds:
      break;
  }
  return 0;
}

// In addition, of a call for a node of a backward pass: torch makes the texts of its two ranges.
inline constexpr std::uint64_t kUnseenNodeNs = 700;
// In addition, of a numbered node in a pause of operators. Torch's lists are cold in the caches of a real
// program, but not in the loop that measures their sorting. And nodes that only add up gradients have no
// number.
inline constexpr std::uint64_t kUnseenPausedNodeNs = 100;
// In addition, of an operator's begin with inputs: torch copies them for the callback.
inline constexpr std::uint64_t kUnseenInputsNs = 80;

}  // namespace lanescope::record
