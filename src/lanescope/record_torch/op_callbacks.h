// What runs when an operator, a node of a backward pass or a range begins and ends.
//
// Cost: the callbacks allocate nothing and take no lock. The address of a RecordFunction identifies
// its range, so no ObserverContext is needed. Inputs are read only if shapes are wanted: encoded
// into a buffer on the stack (codec/op_details.h), and each distinct sequence is kept once. Only
// collectives allocate (collective_fields.h).
//
// Part of torch_observer.cpp (compiled with it, against the user's torch). Callbacks never throw.
#pragma once
#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "lanescope/codec/op_details.h"
#include "lanescope/record/cost_meter.h"
#include "lanescope/record/operator_lengths.h"
#include "lanescope/record/thread_writer.h"
#include "lanescope/record_torch/collective_fields.h"
#include "lanescope/record_torch/op_inputs.h"
#include "lanescope/record_torch/op_names.h"
#include "lanescope/record_torch/op_stacks.h"
#include "lanescope/record_torch/op_tensors.h"
#include "lanescope/record_torch/profiler_state.h"
#include "lanescope/record_torch/torch_cost.h"

namespace lanescope::record_torch {

// Learned from the calls that are measured.
inline constinit record::OperatorLengths operator_lengths;

// Records sizes, group and number of a collective, whatever is recorded for other operators.
[[gnu::noinline]] inline void describe_collective(const at::RecordFunction& fn, bool with_inputs,
                                                  std::uint32_t stack, record::RangeInfo* info,
                                                  record::CallNumbers* numbers) {
  char buffer[codec::kMaxOpDetailsBytes];
  codec::OpDetailsWriter out(buffer, sizeof buffer);
  if (stack != 0) out.stack(stack);
  if (with_inputs) encode_inputs(fn, out);
  char* const mark = out.mark();
  out.keywords();
  auto call = encode_collective(fn, out);
  if (!call.seq && with_inputs) call.seq = sequence_among(fn.inputs());
  if (out.overflowed()) out.undo(mark);
  info->detail = intern_detail(out);
  if (call.seq) numbers->flags |= spool::kHasSeq;
  if (call.comms_id) numbers->flags |= spool::kHasCommsId;
  numbers->seq = call.seq.value_or(0);
  numbers->comms_id = call.comms_id.value_or(0);
}

inline void prepare_thread(uint32_t options) noexcept {
  try {
    if (wants_thread_slot(options)) take_thread_slot();
  } catch (...) {  // out of memory: this thread's allocations are missing
  }
}

// kMeasured: measures its cost.
template <bool kMeasured>
struct MaybeMeasured {
  explicit MaybeMeasured(const at::RecordFunction&) noexcept {}
};
template <>
struct MaybeMeasured<true> : record::MeasuredCall {
  explicit MaybeMeasured(const at::RecordFunction& fn) noexcept
      : MeasuredCall(
            fn.scope() == at::RecordScope::USER_SCOPE ? kLanescopeRanges : kLanescopeOperators,
            torch_cost.scale) {
    if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) add_unseen(torch_cost.of_node);
  }
};

// While operators pause, torch still sorts our callback for ranges around each node of a backward
// pass. None of our code runs then. So the next range of the thread counts the nodes by their
// numbers from the forward pass.
inline void count_paused_nodes() {
  static thread_local std::uint64_t last = at::sequence_number::peek();
  const std::uint64_t now = at::sequence_number::peek();
  const std::uint64_t nodes = now - std::exchange(last, now);
  if (observed_options.load(std::memory_order_relaxed) & LANESCOPE_RECORD_PAUSED)
    record::add_cost(kLanescopeRanges, nodes * torch_cost.of_paused_node);
}

// A range of the program in a pause that leaves them out.
inline bool is_paused_range(const at::RecordFunction& fn) {
  return fn.scope() == at::RecordScope::USER_SCOPE &&
         (observed_options.load(std::memory_order_relaxed) & LANESCOPE_RECORD_PAUSED_RANGES) != 0 &&
         !record::is_step_name(fn.name());
}

// Never leaves out collectives and ranges of the program.
inline bool is_left_out(const at::RecordFunction& fn, std::uint32_t name) {
  const std::uint64_t limit = lanescope_short_operator_ticks.load(std::memory_order_relaxed);
  return limit != 0 && fn.scope() != at::RecordScope::USER_SCOPE && !is_collective(fn) &&
         operator_lengths.is_shorter(name, limit);
}

// What a range without inputs consists of.
[[gnu::always_inline]] inline record::RangeInfo usual_info(const at::RecordFunction& fn,
                                                           std::uint32_t name, std::uint32_t stack,
                                                           bool is_async) {
  record::RangeInfo info;
  info.name = name;
  info.detail = stack;
  info.scope = static_cast<std::uint8_t>(fn.scope());
  info.sequence_number = fn.seqNr();
  info.flags = static_cast<std::uint16_t>(
      (is_async ? spool::kAsync : 0) |
      (info.sequence_number >= 0 ? spool::kHasSequence | spool::kHasForwardThread : 0));
  info.forward_thread = static_cast<std::uint32_t>(fn.forwardThreadId());
  info.handle = reinterpret_cast<std::uintptr_t>(&fn);
  return info;
}

inline bool can_push(const LanescopeWriter* writer, const record::RecordingScope& inside) {
  return inside.ok() && inside.window() == writer->stack_window &&
         writer->depth != kLanescopeStackDepth;
}

// begin_usual() where functions have to be called: the thread's frames are walked, the name is not
// near (`known` is null), or the chunk is full. False: the window has changed, or the stack is full, and nothing else.
template <bool kWithStack>
[[gnu::noinline]] inline bool begin_with_calls(const at::RecordFunction& fn,
                                               LanescopeWriter* writer, const char* name,
                                               const SchemaName* known) {
  const std::uint32_t id = known ? known->id : intern_other_name(fn, name);
  std::uint32_t stack = 0;
  StackOfRange found;
  if constexpr (kWithStack) {
    stack = inherited_stack(writer);
    if (stack == kUnknownStack) {
      find_stack(found);
      stack = found.stack;
    }
  }
  const record::RangeInfo info = usual_info(fn, id, stack, fn.isAsync());
  {
    const record::RecordingScope inside(writer, record::RecordingScope::FromOutside{});
    if (!can_push(writer, inside)) [[unlikely]]
      return false;
    record::begin_pushed(writer, info);
  }
  if (found.is_new) keep_stack(found, fn, name);
  return true;
}

// The usual range in short: no inputs. False: another case, and nothing changed. kWithStack: with its
// Python stack. Only the name is asked for by a call, and first, so that few registers are saved.
template <bool kWithStack>
[[gnu::always_inline]] inline bool begin_usual(const at::RecordFunction& fn) {
  const char* const name = fn.name();
  LanescopeWriter* const writer = lanescope_thread_writer;
  if (!writer || !writer->has_torch_tid || record::RecordingScope::is_inside(writer) ||
      fn.handle() != 0 || is_collective(fn)) [[unlikely]]
    return false;
  // A stack of an earlier window is not written.
  const std::uint32_t stack = kWithStack ? inherited_stack(writer) : 0;
  const SchemaName* const known = find_schema_name(name);
  if (known && stack != kUnknownStack && !record::RecordingScope::is_full(writer)) [[likely]] {
    // torch's dispatcher calls none of its operators asynchronously.
    const record::RangeInfo info = usual_info(fn, known->id, stack, false);
    const record::RecordingScope inside(writer, record::RecordingScope::FromOutside{});
    if (!can_push(writer, inside)) [[unlikely]]
      return false;
    record::begin_pushed_in_chunk(writer, info);
    return true;
  }
  return begin_with_calls<kWithStack>(fn, writer, name, known);
}

template <bool kDetailed, bool kMeasured>
[[gnu::noinline]] inline void begin_any(const at::RecordFunction& fn) {
  if (!record::is_recording()) return;
  MaybeMeasured<kMeasured> cost(fn);
  record::RangeInfo info;
  info.handle = reinterpret_cast<std::uintptr_t>(&fn);
  if constexpr (kMeasured) {
    if (fn.scope() == at::RecordScope::USER_SCOPE) count_paused_nodes();
    if (is_paused_range(fn)) [[unlikely]] {
      record::leave_out_nested(info.handle, &LanescopeCost::left_out_ranges);
      return;
    }
  }
  const uint32_t options = kDetailed ? observed_options.load(std::memory_order_relaxed) : 0;
  if constexpr (kDetailed && kMeasured) {
    if ((options & kInputOptions) != 0) cost.add_unseen(torch_cost.of_inputs);
  }
  const bool with_stack = (options & LANESCOPE_RECORD_STACK) != 0;
  StackOfRange found;
  if constexpr (kDetailed) {
    if ((options & (kInputOptions | LANESCOPE_RECORD_MEMORY)) != 0) prepare_thread(options);
  }
  const char* const name = fn.name();
  info.name = (options & LANESCOPE_RECORD_OVERLOAD_NAMES) != 0 ? intern_overload(fn)
                                                               : intern_name(fn, name);
  if constexpr (kMeasured) {
    if (is_left_out(fn, info.name)) {
      record::leave_out_nested(info.handle, &LanescopeCost::left_out);
      return;
    }
  }
  if constexpr (kDetailed) {
    try {
      if (with_stack) find_stack(found);
      const bool with_inputs = (options & kInputOptions) && !is_collective(fn);
      info.detail = with_inputs ? detail_of(fn, found.stack) : found.stack;
    } catch (...) {  // out of memory: the range is worth more than its details
      info.detail = found.stack;
    }
  }
  info.scope = static_cast<std::uint8_t>(fn.scope());
  if (fn.isAsync()) info.flags = spool::kAsync;
  info.sequence_number = fn.seqNr();
  if (info.sequence_number >= 0) info.flags |= spool::kHasSequence | spool::kHasForwardThread;
  info.forward_thread = static_cast<std::uint32_t>(fn.forwardThreadId());
  record::CallNumbers numbers;
  // torch numbers its calls only if somebody, such as an execution trace, wants it.
  numbers.record_function_id = fn.handle();
  if (numbers.record_function_id != 0) [[unlikely]]
    numbers.flags |= spool::kHasRecordFunctionId;
  if (is_collective(fn)) [[unlikely]] {
    try {
      describe_collective(fn, (options & kInputOptions) != 0, info.detail, &info, &numbers);
    } catch (...) {  // out of memory
    }
  }
  if (numbers.flags != 0) [[unlikely]]
    record::record_call_numbers(info.name, numbers);
  if constexpr (kDetailed) {
    if (wants_tensors(options) && !is_collective(fn)) [[unlikely]]
      note_inputs(fn, info.name);
  }
  record::begin_nested(info);
  if constexpr (kDetailed) {
    if (found.is_new) keep_stack(found, fn, name);
  }
  const LanescopeWriter* writer = lanescope_thread_writer;
  if (writer && writer->slot && !writer->slot->has_torch_tid) [[unlikely]]
    lanescope_set_torch_thread(fn.threadId());
}

// What is recorded of an operator besides its times, by the options when the callback was added.
enum class Details { kNone, kStack, kAny };

template <Details kDetails, bool kMeasured>
inline std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& fn) {
  if constexpr (!kMeasured && kDetails != Details::kAny) {
    if (begin_usual<kDetails == Details::kStack>(fn)) [[likely]]
      return nullptr;
  }
  begin_any<kDetails != Details::kNone, kMeasured>(fn);
  return nullptr;
}

// Also runs for ranges that were open when a recording ended, at any later time.
template <bool kMeasured>
inline void on_end(const at::RecordFunction& fn, at::ObserverContext*) {
  const MaybeMeasured<kMeasured> cost(fn);
  const auto handle = reinterpret_cast<std::uintptr_t>(&fn);
  if constexpr (kMeasured) {
    if (cost.is_measured()) {
      const record::OpenRange range = record::innermost_range(handle);
      if (range.ticks != 0) operator_lengths.learn(range.name, range.ticks);
    }
  }
  record::end_nested(handle);
}

}  // namespace lanescope::record_torch
