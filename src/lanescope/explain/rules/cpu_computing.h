// Operators that compute on the CPU in steady steps, and the copies around them.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {

// Outermost operators of 100 us or more without a call of the GPU's runtime, in steady steps, in order of the trace. Not those
// that only make, move or view memory, and not those of the DataLoader. Made once for these Facts.
const std::vector<SliceId>& long_cpu_operators(const Facts& facts);

// The same in the whole recording, in steps that are measured or not.
const std::vector<SliceId>& cpu_operators_of_recording(const Facts& facts);

// What an operator's thread launched last before it and next after it, in the same step. Borrows the Facts.
struct Neighbours {
  const LaunchedWork* read = nullptr;    // before: a copy of more than a value to the CPU
  const LaunchedWork* upload = nullptr;  // after: a copy of more than a value to the GPU
};
Neighbours copies_around(const Facts& facts, SliceId op);

// What the CPU computes with data that it just read from the GPU: outermost operators without a call of the GPU's runtime, of the
// copy's thread and step, from the end of the copy's call to the thread's next launch. Not those of the DataLoader. Only copies that an
// operator of long_cpu_operators() follows. The operators may take other tensors: a trace does not say.
struct ComputingWithReads {
  std::vector<const LaunchedWork*> reads;  // borrow the Facts
  std::vector<SliceId> ops;                // in order of the trace
  std::vector<analysis::Window> windows;   // of `ops`, those of all threads joined
  std::int64_t waiting_ns = 0;             // the GPU waits for the CPU in them, in all steady steps
  SliceId longest = kNone<SliceId>;
};
// Made once for these Facts.
const ComputingWithReads& computing_with_reads(const Facts& facts);

}  // namespace lanescope::explain::rules
