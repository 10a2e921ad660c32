// Shows ranges that the program opens (record_function, steps) to other listeners of torch:
// torch.profiler, emit_nvtx, an ExecutionTraceObserver. Only the torch observer can do that; it
// registers here when it is loaded.
#pragma once
#include <atomic>
#include <cstddef>
#include <string_view>

#include "lanescope/record/record_abi.h"

extern "C" {

struct LanescopeSharedRange;

// `open` returns null if nobody else listens on this thread (the common case, tens of nanoseconds);
// the caller then records the range. Else the range is open for the others until `close`, on any
// thread. `*recorded` is 1 if the recorder has it, too; 0: the caller still has to record it.
// `args` is text that listeners show as the range's input; null: none. Neither throws.
struct LanescopeRangeListeners {
  LanescopeSharedRange* (*open)(const char* name, std::size_t name_size, const char* args,
                                std::size_t args_size, int* recorded);
  void (*close)(LanescopeSharedRange* range);
};

// Null: nobody can listen. Once set, it stays callable until the process ends.
LANESCOPE_RECORD_EXPORT extern std::atomic<const LanescopeRangeListeners*>
    lanescope_range_listeners;

}  // extern "C"

namespace lanescope::record {

// See LanescopeRangeListeners::open.
inline LanescopeSharedRange* open_shared_range(std::string_view name, std::string_view args,
                                               bool* recorded) noexcept {
  // acquire: pairs with the release store of the observer's install.
  const auto* listeners = lanescope_range_listeners.load(std::memory_order_acquire);
  if (!listeners) return nullptr;
  int by_observer = 0;
  LanescopeSharedRange* range =
      listeners->open(name.data(), name.size(), args.data(), args.size(), &by_observer);
  *recorded = by_observer != 0;
  return range;
}

inline void close_shared_range(LanescopeSharedRange* range) noexcept {
  if (!range) return;
  lanescope_range_listeners.load(std::memory_order_acquire)->close(range);
}

}  // namespace lanescope::record
