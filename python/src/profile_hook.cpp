// Up to Python 3.11: the profile hook of each thread.
#include "frame_events.h"
#include "frame_hooks.h"

#if PY_VERSION_HEX < 0x030c0000

namespace lanescope::python::frames {
namespace {

const PyMethodDef* definition_of(PyObject* function) {
  return reinterpret_cast<const PyCFunctionObject*>(function)->m_ml;
}

[[gnu::noinline]] void on_other_event(PyFrameObject* object, int what, PyObject* arg,
                                      std::uint32_t options) noexcept {
  if (!hot.on.load(std::memory_order_relaxed) ||
      (record::is_recording() && !(options & kFrameOptions))) {
    PyEval_SetProfile(nullptr, nullptr);  // a forked child, or the budget is used up
    return;
  }
  const void* const frame = lanescope_frame_of(object);
  note(options, [&] {
    switch (what) {
      case PyTrace_CALL:
        return on_call(frame, options);
      case PyTrace_RETURN:  // also when an exception leaves the function
        return on_return(frame, options);
      case PyTrace_C_CALL: {
        const auto* function = reinterpret_cast<const PyCFunctionObject*>(arg);
        return on_c_call(frame, function->m_ml, function->m_self, options);
      }
      case PyTrace_C_RETURN:
      case PyTrace_C_EXCEPTION:
        on_c_return(frame, options);
        // The new thread is there and waits for the GIL.
        if (definition_of(arg) == hot.start_thread) hook_all_threads(nullptr);
        return;
    }
  });
}

int on_profile_event(PyObject*, PyFrameObject* object, int what, PyObject* arg) {
  const std::uint32_t options = record::record_options();
  bool is_noted = false;
  switch (what) {
    case PyTrace_CALL:
      is_noted = note_call(object, options);
      break;
    case PyTrace_RETURN:
      is_noted = note_return(key_of(lanescope_frame_of(object)), options);
      break;
    case PyTrace_C_CALL:
      is_noted = note_c_call(lanescope_frame_of(object), definition_of(arg), options);
      break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
      is_noted = definition_of(arg) != hot.start_thread &&
                 note_return(key_of_c_call(lanescope_frame_of(object)), options);
      break;
  }
  if (!is_noted) [[unlikely]]
    on_other_event(object, what, arg, options);
  return 0;
}

}  // namespace

void hook_all_threads(int* foreign) {
  const std::uint64_t now = record::ticks();
  PyThreadState* state = PyInterpreterState_ThreadHead(PyThreadState_Get()->interp);
  for (; state; state = PyThreadState_Next(state)) {
    if (state->c_profilefunc == on_profile_event) continue;
    if (state->c_profilefunc) {
      if (foreign) ++*foreign;
    } else if (_PyEval_SetProfile(state, on_profile_event, nullptr) == 0) {
      hooked_threads()[state] = now;
    } else {
      PyErr_Clear();  // an audit hook said no
    }
  }
}

int unhook_all_threads() {
  int taken = 0;
  PyThreadState* state = PyInterpreterState_ThreadHead(PyThreadState_Get()->interp);
  for (; state; state = PyThreadState_Next(state)) {
    if (state->c_profilefunc == on_profile_event) {
      if (_PyEval_SetProfile(state, nullptr, nullptr) != 0) PyErr_Clear();
    } else if (state->c_profilefunc && hooked_threads().contains(state)) {
      ++taken;
    }
  }
  hooked_threads().clear();
  return taken;
}

PyObject* frame_callbacks() { return PyDict_New(); }

}  // namespace lanescope::python::frames

#endif
