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
#include <string_view>
#include <utility>

#include "lanescope/record/thread_writer.h"
#include "lanescope/record_torch/torch_observer.h"

namespace lanescope::record_torch {

inline std::atomic<LanescopeStackFunction> stack_function{nullptr};

// The stack that the last walk found. Other operators have the same stack in two cases:
// - The walk was in a call of a C function, or in a thread without Python code, such as one that runs
//   nodes of a backward pass. Its stack holds until the C function returns, or Python code runs.
// - The range of the walk is open and holds its frame. Its stack holds for the operators inside, while
//   that frame is the innermost one.
struct KnownStack {
  LanescopeStackPosition position;
  std::uint32_t stack;
  std::uint32_t depth;            // of the range, among those of its thread; or kNoRange
  std::uint32_t sequence, index;  // of the range
};
inline constexpr std::uint32_t kNoRange = ~std::uint32_t{0};  // the range does not hold its frame
inline constexpr std::uint32_t kUnknownStack = ~std::uint32_t{0};
inline __thread KnownStack* known_stack __attribute__((tls_model("initial-exec"))) = nullptr;
inline __thread bool stacks_end __attribute__((tls_model("initial-exec"))) = false;

struct FreeKnownStack {
  ~FreeKnownStack() {
    stacks_end = true;
    std::free(std::exchange(known_stack, nullptr));
  }
};

[[gnu::noinline]] inline KnownStack* make_known_stack() {
  if (stacks_end) return nullptr;
  static thread_local FreeKnownStack at_thread_end;
  static_cast<void>(&at_thread_end);
  return known_stack = static_cast<KnownStack*>(std::calloc(1, sizeof(KnownStack)));
}

// `text` ends with 0. For a short beginning: longer ones are faster with strncmp().
[[gnu::always_inline]] inline bool begins_with(const char* text, std::string_view beginning) {
  for (const char expected : beginning)
    if (*text++ != expected) return false;
  return true;
}

// True: the frame that called this range stays the innermost one until the range ends, except for
// Python code that the range calls. False for ranges that Python code opens and leaves open.
inline bool holds_its_frame(const at::RecordFunction& fn, const char* name) {
  if (fn.scope() != at::RecordScope::FUNCTION)
    return fn.scope() == at::RecordScope::BACKWARD_FUNCTION;
  constexpr std::string_view kOperator = "aten::", kNode = "autograd::engine::evaluate_function: ";
  return begins_with(name, kOperator) || std::strncmp(name, kNode.data(), kNode.size()) == 0;
}

// The last walk's stack, if it is also that of a range that is about to begin (KnownStack) and Python
// has run nothing since; else kUnknownStack. Changes nothing.
[[gnu::always_inline]] inline std::uint32_t inherited_stack(const LanescopeWriter* writer) {
  const KnownStack* const last = known_stack;
  if (!last) return kUnknownStack;
  const std::uint64_t mark = record::frame_mark(writer);
  if (mark == 0 || mark != last->position.mark) return kUnknownStack;
  if (last->position.is_fixed != 0) return last->stack;
  if (last->depth >= writer->depth) return kUnknownStack;
  const LanescopeOpenRange& open = writer->stack[last->depth];
  const bool is_inside = open.index == last->index && open.sequence == last->sequence;
  return is_inside ? last->stack : kUnknownStack;
}

struct StackOfRange {
  std::uint32_t stack = 0, depth = 0;
  bool is_new = false;  // found by a walk, not passed on
  LanescopeStackPosition position{};
};

// Fills `found` in its place, because a copy would be slow: it would read what has just been written in
// parts, and wait until these stores have left the core, after those of the last record.
[[gnu::always_inline]] inline void find_stack(StackOfRange& found) {
  const LanescopeStackFunction capture = stack_function.load(std::memory_order_acquire);
  const LanescopeWriter* writer = record::thread_writer();
  if (!capture || !writer) return;
  const bool is_now = writer->stack_window == lanescope_recording.load(std::memory_order_relaxed);
  found.depth = is_now ? writer->depth : 0;
  std::uint32_t known = 0;
  if (const KnownStack* const last = known_stack; last && last->depth < found.depth) {
    const LanescopeOpenRange& open = writer->stack[last->depth];
    if (last->index == open.index && last->sequence == open.sequence && open.sequence != 0) {
      found.position = last->position;
      known = last->stack;
    }
  }
  const std::uint64_t mark = found.position.mark;
  found.stack = capture(&found.position, known);
  found.is_new =
      found.stack != known || (found.position.is_fixed != 0 && found.position.mark != mark);
}

// Keeps the stack of a range that may hold its frame, and that has begun.
[[gnu::noinline]] inline void keep_stack_of_range(const StackOfRange& found,
                                                  const at::RecordFunction& fn, const char* name) {
  const LanescopeWriter* writer = lanescope_thread_writer;
  if (!writer || writer->depth != found.depth + 1) return;
  const LanescopeOpenRange& open = writer->stack[found.depth];
  // Nothing tells when a range ends that is not recorded.
  if (open.sequence == 0 || !holds_its_frame(fn, name)) return;
  KnownStack* const last = known_stack ? known_stack : make_known_stack();
  if (last) *last = {found.position, found.stack, found.depth, open.sequence, open.index};
}

// The range has begun, and the stack is new. A fixed one is passed on whether or not the range goes on.
[[gnu::always_inline]] inline void keep_stack(const StackOfRange& found,
                                              const at::RecordFunction& fn, const char* name) {
  if (found.position.is_fixed == 0) return keep_stack_of_range(found, fn, name);
  KnownStack* const last = known_stack ? known_stack : make_known_stack();
  if (last) *last = {found.position, found.stack, kNoRange, 0, 0};
}

}  // namespace lanescope::record_torch
