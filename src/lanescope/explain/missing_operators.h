// Whether the thread that launches the GPU's work has operators in the trace.
#pragma once
#include "lanescope/explain/facts.h"

namespace lanescope::explain {

enum class MissingOperators : std::uint8_t {
  kNone,      // none are missing, or the work is not PyTorch's
  kAll,       // the trace has no operators at all
  kOfThread,  // other threads have some
};
// Eight kernels or more of PyTorch (`at::native`) were launched by calls of Facts::main_thread, which has no operator. Nodes of CUDA
// graphs do not count. O(n). Made once for these Facts.
MissingOperators missing_operators(const Facts& facts);

// What it means and how to record them. Empty pattern: none are missing.
Sentence missing_operators_note(const Facts& facts);

// True: this thread is not the one with which its process began, or other threads have operators and it has none. It may
// wait for work that other threads give it.
bool is_worker_thread(const Facts& facts, TrackId thread);

}  // namespace lanescope::explain
