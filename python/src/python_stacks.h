// The Python call stack of this thread as one number, for the recorder's callbacks.
#pragma once
#include <atomic>
#include <cstdint>

#include "lanescope/record_torch/torch_observer.h"
#include "python_frames.h"

namespace lanescope::python {

// The detail id (codec/op_details.h) of this thread's stack; 0: it runs no Python code, or stacks
// are off. With or without the GIL, any thread. A stack met before costs the walk over its frames,
// a new one some microseconds. `position` and `known`: see LanescopeStackFunction.
std::uint32_t capture_stack(LanescopeStackPosition* position, std::uint32_t known) noexcept;

// The text id of "file.py(line): function" of a frame on this thread's stack; 0: it has not begun,
// or stacks were never started. Takes a lock and looks into two tables, so callers keep the ids as
// long as code_generation() stays the same. It changes when a code object that was asked for is
// destroyed, because another one may then get its address.
std::uint32_t frame_text_id(const LanescopeFrame& frame) noexcept;
extern std::atomic<std::uint32_t> code_generations;
inline std::uint32_t code_generation() noexcept {
  return code_generations.load(std::memory_order_relaxed);
}

}  // namespace lanescope::python
