// What a hook does when a function is called or returns: it notes that in the thread's frames and
// in the recording.
//
// Nearly every event is about the expected frame, with a known name, in a known thread. The inline
// functions note such an event and return true. For any other event they change nothing and return
// false, and the caller uses the functions at the end.
#pragma once
#include <optional>

#include "frame_modules.h"
#include "frame_names.h"
#include "frame_stack.h"
#include "lanescope/record/cost_meter.h"
#include "lanescope/record/thread_writer.h"
#include "python_frames.h"

namespace lanescope::python::frames {

// ---- the common events, in short

// What a frame's record says besides its place.
struct FrameInfo {
  std::uint32_t name = 0;
  std::uint16_t flags = 0;
  std::int64_t module = 0;
};

template <bool kIsPython>
bool begin_known_in_next_chunk(Key key, Key caller, FrameInfo frame, const void* outer);

// `caller`: the key of what must be open innermost, or for a Python frame that plus one. `outer`: the
// instruction that a Python frame's caller is at. Without kMayTakeChunk nothing is called in here, so
// that it saves no registers.
template <bool kIsPython, bool kMayTakeChunk = false>
[[gnu::always_inline]] inline bool begin_known(Key key, Key caller, FrameInfo frame,
                                               [[maybe_unused]] const void* outer = nullptr) {
  ThreadFrames* const thread = thread_frames;
  LanescopeWriter* const writer = lanescope_thread_writer;
  if (!thread || !writer || record::RecordingScope::is_inside(writer)) [[unlikely]]
    return false;
  const std::uint32_t count = thread->count;
  if (count - 1 >= kMostOpen - 1 || (thread->lost | thread->import) != 0) [[unlikely]]
    return false;  // none is open, or no more can be
  const OpenFrame& last = thread->open[count - 1];
  if ((kIsPython ? frame_of_key(last.key) : last.key) != caller) [[unlikely]]
    return false;
  {
    const record::RecordingScope inside(writer, record::RecordingScope::FromOutside{});
    if (inside.window() != thread->window) [[unlikely]]
      return false;
    if (kMayTakeChunk || !record::RecordingScope::is_full(writer)) [[likely]] {
      record::RangeInfo info;
      info.name = frame.name;
      info.scope = spool::kFrameScope;
      info.flags = frame.flags;
      info.sequence_number = frame.module;
      info.forward_thread = count + 1;
      const record::RangeToken token = kMayTakeChunk ? record::begin_range(writer, info)
                                                     : record::begin_range_in_chunk(writer, info);
      std::uint64_t callers = last.callers_hash;
      if constexpr (kIsPython) callers = lanescope_hash_on(callers, outer);
      thread->open[count] = {key, token, callers};
      thread->count = count + 1;
      ++thread->events;
      return true;
    }
  }
  return begin_known_in_next_chunk<kIsPython>(key, caller, frame, outer);
}

template <bool kIsPython>
[[gnu::noinline, gnu::cold]] bool begin_known_in_next_chunk(Key key, Key caller, FrameInfo frame,
                                                            const void* outer) {
  return begin_known<kIsPython, true>(key, caller, frame, outer);
}

[[gnu::noinline]] inline bool note_module_call(const LanescopeCall& call) {
  const void* const self = lanescope_first_argument(call.frame);
  const NearModule* const module =
      find_near_module(self, lanescope_recording.load(std::memory_order_relaxed));
  if (!module) return false;
  return begin_known<true>(key_of(call.frame), key_of(call.outer),
                           {module->name, spool::kModuleFrame, module->number},
                           call.outer_instruction);
}

inline bool note_call(const void* frame_object, std::uint32_t options) {
  if (!are_all_frames_wanted(options) || !hot.on.load(std::memory_order_relaxed)) [[unlikely]]
    return false;
  LanescopeCall call;
  lanescope_read_call(frame_object, &call);
  if (call.at.code == hot.module_code) return note_module_call(call);
  if (call.at.code == hot.import_code) [[unlikely]]
    return false;
  const KnownFrame* const known = find_known(call.at);
  if (!known || known->name == 0) [[unlikely]]
    return false;
  return begin_known<true>(key_of(call.frame), key_of(call.outer), {.name = known->name},
                           call.outer_instruction);
}

inline bool note_c_call(const void* caller, const PyMethodDef* definition, std::uint32_t options) {
  if (!are_all_frames_wanted(options) || !hot.on.load(std::memory_order_relaxed)) [[unlikely]]
    return false;
  const KnownFunction* const known = find_known(definition);
  if (!known) [[unlikely]]
    return false;
  return begin_known<false>(key_of_c_call(caller), key_of(caller), {.name = known->name});
}

// Of a frame or of the call of a C function.
inline bool note_return(Key key, std::uint32_t options) {
  if (!are_all_frames_wanted(options)) [[unlikely]]
    return false;
  ThreadFrames* const thread = thread_frames;
  LanescopeWriter* const writer = lanescope_thread_writer;
  if (!thread || !writer || record::RecordingScope::is_inside(writer)) [[unlikely]]
    return false;
  const std::uint32_t count = thread->count;
  if (count == 0) [[unlikely]]
    return false;
  const OpenFrame& last = thread->open[count - 1];
  if (last.key != key || key == thread->import) [[unlikely]]
    return false;
  const std::uint64_t now = record::ticks();
  const record::RecordingScope inside(writer, record::RecordingScope::FromOutside{});
  const record::RangeToken token = last.token();
  if (inside.window() != thread->window || !record::detail::ends_in_place(writer, token))
      [[unlikely]]
    return false;
  thread->count = count - 1;
  ++thread->events;
  record::detail::end_in_place(writer, token, now);
  return true;
}

// ---- all events. `frame` is called, returns, or calls the C function `definition` of `self`.

void on_call(const void* frame, std::uint32_t options);
void on_return(const void* frame, std::uint32_t options);
void on_c_call(const void* caller, const PyMethodDef* definition, PyObject* self,
               std::uint32_t options);
void on_c_return(const void* caller, std::uint32_t options);

// The hooks are C: nothing leaves them.
template <typename Event>
[[gnu::noinline]] void note(std::uint32_t options, const Event& event) noexcept {
  try {
    std::optional<record::MeasuredCall> cost;
    if (options & LANESCOPE_RECORD_MEASURE) cost.emplace(kLanescopeFrames);
    event();
  } catch (...) {  // out of memory: this one is missing
  }
}

}  // namespace lanescope::python::frames
