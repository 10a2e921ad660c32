// Ranges of the program go through torch when another tool listens to torch on their thread
// (record/shared_range.h).
//
// Part of torch_observer.cpp (compiled with it, against the user's torch). Nothing throws.
#pragma once
#include <ATen/record_function.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "lanescope/record/shared_range.h"
#include "lanescope/record_torch/op_callbacks.h"

// What torch's record_function keeps while it is open.
struct LanescopeSharedRange {
  at::RecordFunction function;
  c10::IValue args;  // the callbacks get a reference
  explicit LanescopeSharedRange(at::StepCallbacks&& callbacks) : function(std::move(callbacks)) {}
};

namespace lanescope::record_torch {

inline bool is_ours(const at::StepCallbacks::StartEndPair& pair) {
  return pair.end_ == on_end<false> || pair.end_ == on_end<true>;
}

inline LanescopeSharedRange* open_range(const char* name, size_t name_size, const char* args,
                                        size_t args_size, int* recorded) {
  *recorded = 0;
  try {
    // Ask once per range, like torch: callbacks that sample count how often they are asked.
    auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
    if (!callbacks) return nullptr;
    const auto& pairs = callbacks->callbacks_;
    const bool ours = std::any_of(pairs.begin(), pairs.end(), is_ours);
    const bool with_args = args && callbacks->needs_inputs_;
    // Only our callback listens: the recorder writes the range faster without torch, but takes no inputs.
    if (ours && pairs.size() == 1 && !with_args) return nullptr;
    auto range = std::make_unique<LanescopeSharedRange>(std::move(*callbacks));
    const std::string text(name, name_size);
    if (with_args) {
      range->args = c10::IValue(std::string(args, args_size));
      range->function.before(text, c10::ArrayRef<const c10::IValue>(&range->args, 1));
    } else {
      range->function.before(text);
    }
    *recorded = ours ? 1 : 0;
    return range.release();
  } catch (...) {  // out of memory, or a callback threw: only the recorder has the range
    return nullptr;
  }
}

inline void close_range(LanescopeSharedRange* range) {
  try {
    delete range;
  } catch (...) {  // a callback threw
  }
}

inline constexpr LanescopeRangeListeners kListeners = {open_range, close_range};

}  // namespace lanescope::record_torch
