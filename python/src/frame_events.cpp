#include "frame_events.h"

namespace lanescope::python::frames {

void on_call(const void* frame, std::uint32_t options) {
  const bool only_modules = !(options & LANESCOPE_RECORD_STACK);
  if (only_modules && lanescope_frame_code(frame) != hot.module_code) return;
  const void* const caller = lanescope_outer_frame(frame);
  ThreadFrames* const thread = ready(options, caller);
  if (!thread || thread->import != 0) return;
  if (!only_modules && thread->lost == 0) match_caller(*thread, caller);
  push_frame(*thread, frame, options);
}

void on_return(const void* frame, std::uint32_t options) {
  const bool only_modules = !(options & LANESCOPE_RECORD_STACK);
  if (only_modules && lanescope_frame_code(frame) != hot.module_code) return;
  if (ThreadFrames* const thread = ready(options, frame)) leave(*thread, key_of(frame));
}

void on_c_call(const void* caller, const PyMethodDef* definition, PyObject* self,
               std::uint32_t options) {
  if (!(options & LANESCOPE_RECORD_STACK)) return;
  ThreadFrames* const thread = ready(options, caller);
  if (!thread || thread->import != 0) return;
  if (thread->count != 0 && thread->last().key != key_of(caller) && thread->lost == 0)
    if (const auto at = find_open(*thread, [&](Key key) { return key == key_of(caller); }))
      pop_to(*thread, *at + 1);
  record::RangeInfo info;
  info.name = name_of_c_function(definition, self);
  push(*thread, key_of_c_call(caller), info);
}

void on_c_return(const void* caller, std::uint32_t options) {
  if (!(options & LANESCOPE_RECORD_STACK)) return;
  if (ThreadFrames* const thread = ready(options, caller)) leave(*thread, key_of_c_call(caller));
}

}  // namespace lanescope::python::frames
