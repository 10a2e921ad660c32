// The Python stack of an operator: read once per outermost operator and passed on to those that it
// calls. docs/decisions/python_stacks.md.
//
// Part of torch_observer.cpp (compiled with it, against the user's torch). Nothing throws.
#pragma once
#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "lanescope/record/thread_writer.h"
#include "lanescope/record_torch/torch_observer.h"

namespace lanescope::record_torch {

inline std::atomic<LanescopeStackFunction> stack_function{nullptr};

// The stack that an open operator's callback found, for the operators that it calls. The stack is
// the same as long as the thread's innermost frame is the same.
struct KnownStack {
  LanescopeOpenRange range;  // the range that this belongs to
  LanescopeStackPosition position;
  std::uint32_t stack;
};
inline __thread KnownStack* known_stacks __attribute__((tls_model("initial-exec"))) = nullptr;
inline __thread bool stacks_end __attribute__((tls_model("initial-exec"))) = false;

struct FreeKnownStacks {
  ~FreeKnownStacks() {
    stacks_end = true;
    std::free(std::exchange(known_stacks, nullptr));
  }
};

[[gnu::noinline]] inline KnownStack* make_known_stacks() {
  if (stacks_end) return nullptr;
  static thread_local FreeKnownStacks at_thread_end;
  static_cast<void>(&at_thread_end);
  return known_stacks =
             static_cast<KnownStack*>(std::calloc(kLanescopeStackDepth, sizeof(KnownStack)));
}

// Whether the frame that called this range stays innermost until the range ends, except for Python
// code that the range calls. False for ranges that Python code opens and leaves open.
inline bool holds_its_frame(const at::RecordFunction& fn) {
  return fn.scope() == at::RecordScope::BACKWARD_FUNCTION ||
         (fn.scope() == at::RecordScope::FUNCTION && std::strncmp(fn.name(), "aten::", 6) == 0);
}

struct StackOfRange {
  std::uint32_t stack = 0, depth = 0;
  LanescopeStackPosition position{};
};

inline StackOfRange find_stack() {
  StackOfRange found;
  const LanescopeStackFunction capture = stack_function.load(std::memory_order_acquire);
  const LanescopeWriter* writer = record::thread_writer();
  if (!capture || !writer) return found;
  const bool is_now = writer->stack_window == lanescope_recording.load(std::memory_order_relaxed);
  found.depth = is_now ? writer->depth : 0;
  std::uint32_t known = 0;
  if (found.depth != 0 && known_stacks) {
    const KnownStack& above = known_stacks[found.depth - 1];
    const LanescopeOpenRange& open = writer->stack[found.depth - 1];
    if (open.sequence != 0 && above.range.sequence == open.sequence &&
        above.range.index == open.index) {
      found.position = above.position;
      known = above.stack;
    }
  }
  found.stack = capture(&found.position, known);
  return found;
}

// The range has begun.
inline void keep_stack(const StackOfRange& found, const at::RecordFunction& fn) {
  const LanescopeWriter* writer = lanescope_thread_writer;
  if (!writer || writer->depth != found.depth + 1) return;
  KnownStack* const all = known_stacks ? known_stacks : make_known_stacks();
  if (!all) return;
  all[found.depth] = {writer->stack[found.depth],
                      holds_its_frame(fn) ? found.position : LanescopeStackPosition{}, found.stack};
}

}  // namespace lanescope::record_torch
