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
  std::vector<std::uint32_t> stack_of;  // one entry a TorchEvent
};

// From "Call stack" arguments; a python_function row's stack is its chain of Python parents. A
// backward operator, and all below it, shows the stack of the forward operator it belongs to, as in
// torch. Traces without stacks give empty ones. O(events + text of distinct stacks). Any thread.
CallStacks build_call_stacks(const Trace& trace, const TorchEvents& events);

}  // namespace lanescope::analysis
