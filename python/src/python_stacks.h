// The Python call stack of this thread as one number, for the recorder's callbacks.
#pragma once
#include <cstdint>

#include "lanescope/record_torch/torch_observer.h"

namespace lanescope::python {

// The detail id (codec/op_details.h) of this thread's stack; 0: it runs no Python code, or stacks
// are off. With or without the GIL, any thread. A stack met before costs the walk over its frames,
// a new one some microseconds. `position` and `known`: see LanescopeStackFunction.
std::uint32_t capture_stack(LanescopeStackPosition* position, std::uint32_t known) noexcept;

}  // namespace lanescope::python
