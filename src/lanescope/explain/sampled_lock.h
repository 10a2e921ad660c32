// What samples of Python stacks show of the interpreter's lock (GIL) in some stretches of time: who
// held it while others waited, and where garbage was collected.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lanescope/analysis/steps.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain {

// Samples of some kind, and the thread and innermost function that have most of them.
struct LockHolder {
  std::int64_t samples = 0;
  std::int64_t thread = 0, of_thread = 0;
  std::string function;  // "file.py(first line): function"; empty: none
  std::int64_t of_function = 0;
  SliceId longest = kNone<SliceId>;  // slice of that function with most of these samples
};

struct SampledLock {
  std::int64_t samples = 0;  // of `thread`: how often it was looked at
  // In which another thread than `thread` held the lock, while at least one thread waited for it.
  LockHolder others_held;
  LockHolder collecting;  // in which any thread collected garbage
};

// docs/definitions/python_samples.md#lock-in-explain. Nothing: the trace has no samples of that thread.
// The stretches are disjoint and in order of time. O(slices log stretches).
std::optional<SampledLock> find_sampled_lock(const Trace& trace, TrackId thread,
                                             std::span<const analysis::Window> stretches);

}  // namespace lanescope::explain
