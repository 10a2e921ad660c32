// From Python 3.12 on: callbacks of sys.monitoring, of all threads.
#include <array>
#include <cstddef>
#include <utility>

#include "frame_events.h"
#include "frame_hooks.h"

#if PY_VERSION_HEX >= 0x030c0000

namespace lanescope::python::frames {
namespace {

PyObject* disable = nullptr;  // sys.monitoring.DISABLE; with the GIL

// As lanescope_current_frame(), without a call of its own: this part of a thread's state is public.
inline const void* current_frame() {
#if PY_VERSION_HEX >= 0x030f0000 || defined(Py_GIL_DISABLED)
  return lanescope_current_frame();
#elif PY_VERSION_HEX >= 0x030d0000
  return PyThreadState_GetUnchecked()->current_frame;
#else
  return _PyThreadState_UncheckedGet()->cframe->current_frame;
#endif
}

// ---- all but the common events. What they return: when nobody wants frames any more, Python need
// not call again here.

[[gnu::noinline]] PyObject* answer(std::uint32_t options, bool may_disable) {
  const bool is_unwanted = record::is_recording() && !(options & kFrameOptions);
  if (is_unwanted) count_changes(false);
  return Py_NewRef(may_disable && is_unwanted && disable ? disable : Py_None);
}

[[gnu::noinline]] PyObject* any_call(std::uint32_t options, bool may_disable) {
  if (options & kFrameOptions)
    note(options, [options] { on_call(lanescope_current_frame(), options); });
  return answer(options, may_disable);
}

[[gnu::noinline]] PyObject* any_return(std::uint32_t options, bool may_disable) {
  if (options & kFrameOptions)
    note(options, [options] { on_return(lanescope_current_frame(), options); });
  return answer(options, may_disable);
}

// Of what can be called only these are C functions, as for a profile hook. PyCFunction_Check() would
// ask for each Python function whether one of all its type's bases is that of C functions; but
// such a base would be on the way of tp_base.
inline const PyMethodDef* c_function(PyObject* const* args, std::size_t count, PyObject** self) {
  if (PyVectorcall_NARGS(count) < 4) return nullptr;
  PyObject* const callable = args[2];
  PyTypeObject* const type = Py_TYPE(callable);
  if (type == hot.function_type || type == hot.method_type) return nullptr;
  if (type == hot.method_descriptor_type) {
    *self = args[3];
    return reinterpret_cast<const PyMethodDescrObject*>(callable)->d_method;
  }
  const PyTypeObject* base = type;
  while (base && base != hot.c_function_type) base = base->tp_base;
  if (!base) return nullptr;
  const auto* function = reinterpret_cast<const PyCFunctionObject*>(callable);
  *self = function->m_self;
  return function->m_ml;
}

[[gnu::noinline]] PyObject* any_c_call(PyObject* const* args, std::size_t count,
                                       std::uint32_t options) {
  PyObject* self = nullptr;
  const PyMethodDef* const definition = c_function(args, count, &self);
  if (options & kFrameOptions) {
    if (!definition) Py_RETURN_NONE;
    note(options, [=] { on_c_call(lanescope_current_frame(), definition, self, options); });
  }
  return answer(options, true);
}

[[gnu::noinline]] PyObject* any_c_return(PyObject* const* args, std::size_t count,
                                         std::uint32_t options) {
  PyObject* self = nullptr;
  if ((options & kFrameOptions) && c_function(args, count, &self))
    note(options, [=] { on_c_return(lanescope_current_frame(), options); });
  Py_RETURN_NONE;
}

// ---- the callbacks. Short, so that the common event saves few registers. None is immortal in these versions.

template <bool kMayDisable>
PyObject* on_call_event(PyObject*, PyObject* const*, std::size_t, PyObject*) {
  const std::uint32_t options = record::record_options();
  if (note_call(nullptr, options)) [[likely]]
    return hot.none;
  return any_call(options, kMayDisable);
}

template <bool kMayDisable>
PyObject* on_return_event(PyObject*, PyObject* const*, std::size_t, PyObject*) {
  const std::uint32_t options = record::record_options();
  if (note_return(key_of(current_frame()), options)) [[likely]]
    return hot.none;
  return any_return(options, kMayDisable);
}

PyObject* on_c_call_event(PyObject*, PyObject* const* args, std::size_t count, PyObject*) {
  const std::uint32_t options = record::record_options();
  PyObject* self = nullptr;
  const PyMethodDef* const definition = c_function(args, count, &self);
  if (!definition) {
    if (options & kFrameOptions) [[likely]]
      return hot.none;
  } else if (note_c_call(current_frame(), definition, options)) [[likely]] {
    return hot.none;
  }
  return any_c_call(args, count, options);
}

PyObject* on_c_return_event(PyObject*, PyObject* const* args, std::size_t count, PyObject*) {
  const std::uint32_t options = record::record_options();
  // Another callable has no open call of this caller, so it need not be looked at first.
  if (note_return(key_of_c_call(current_frame()), options)) [[likely]]
    return hot.none;
  return any_c_return(args, count, options);
}

// What sys.monitoring calls. An object with a function of its own: Python's built-in functions
// check each call.
struct Callback {
  PyObject_HEAD vectorcallfunc function;
};

PyTypeObject* callback_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(Callback, function), Py_READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_members, members},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {0, nullptr}};
  static PyType_Spec spec{
      "lanescope._core.FrameCallback", sizeof(Callback), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

bool add_callback(PyObject* made, const char* name, vectorcallfunc function) {
  PyTypeObject* const type = callback_type();
  PyObject* const callback = type ? PyType_GenericAlloc(type, 0) : nullptr;
  if (!callback) return false;
  reinterpret_cast<Callback*>(callback)->function = function;
  const int result = PyDict_SetItemString(made, name, callback);
  Py_DECREF(callback);
  return result == 0;
}

// sys.monitoring.DISABLE; false: Python has an error set.
bool find_disable() {
  PyObject* const monitoring = PySys_GetObject("monitoring");  // borrowed
  if (!disable && monitoring) disable = PyObject_GetAttrString(monitoring, "DISABLE");
  if (!monitoring) PyErr_SetString(PyExc_RuntimeError, "this Python has no sys.monitoring");
  return disable != nullptr;
}

}  // namespace

void hook_all_threads(int*) {}
int unhook_all_threads() { return 0; }

PyObject* frame_callbacks() {
  static const std::array<std::pair<const char*, vectorcallfunc>, 9> callbacks{{
      {"PY_START", on_call_event<true>},
      {"PY_RESUME", on_call_event<true>},
      {"PY_THROW", on_call_event<false>},
      {"PY_RETURN", on_return_event<true>},
      {"PY_YIELD", on_return_event<true>},
      {"PY_UNWIND", on_return_event<false>},
      {"CALL", on_c_call_event},
      {"C_RETURN", on_c_return_event},
      {"C_RAISE", on_c_return_event},
  }};
  PyObject* const made = PyDict_New();
  bool is_done = made && find_disable();
  for (const auto& [name, function] : callbacks)
    is_done = is_done && add_callback(made, name, function);
  if (is_done) return made;
  Py_XDECREF(made);
  return nullptr;
}

}  // namespace lanescope::python::frames

#endif
