// The Python call stack of each row of torch's table, as recorded with with_stack and verbose.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/analysis/torch_events.h"

namespace lanescope::analysis {

// Innermost frame first. Equal stacks share one id; id 0 is the empty stack.
struct CallStacks {
  std::vector<std::vector<std::string>> stacks{{}};
  std::vector<std::uint32_t> stack_of;  // one entry per TorchEvent
};

// From "Call stack" arguments; the stack of a python_function row is its chain of Python parents.
// As in torch, a backward operator and all below it have the stack of its forward operator. Traces
// without stacks give empty ones. In lanescope's own traces the argument has the lines of the
// calls; with kTorch, recorded Python frames replace these lines, as in torch. O(events + text of
// distinct stacks). Any thread.
CallStacks build_call_stacks(const Trace& trace, const TorchEvents& events);

}  // namespace lanescope::analysis
