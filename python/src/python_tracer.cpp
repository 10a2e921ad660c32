// Python frames: a range for each call of a function, as torch.profiler's with_stack writes them.
//
// Problem: a hook runs at each call and return of the program, a million times a second and more.
// Idea: the recorder's own hot path takes the range (thread_writer.h), and a name is one look into
// a small table: by code object and instruction for Python functions, by method definition for C
// functions, by object for modules. The hook is Python's: up to 3.11 the C profile hook of each
// thread, from 3.12 on callbacks of sys.monitoring, which lanescope/_frames.py sets. All of it runs
// with the GIL, which is the lock of everything here.
//
// The parts: names (frame_names.h), modules (frame_modules.h), the open frames of a thread
// (frame_stack.h), what an event does (frame_events.h), and how Python tells of it (frame_hooks.h).
// This file starts and ends it. docs/decisions/python_frames.md.
#include "bindings.h"
#include "frame_hooks.h"
#include "frame_modules.h"
#include "frame_names.h"
#include "frame_stack.h"

namespace lanescope::python {
namespace {

using namespace frames;  // NOLINT: this file's own parts

// How many threads keep a profile hook of somebody else and so are left out. A window is open.
// `is_new`: modules are numbered from 0 again, and C methods are named by their next object. `import_code`: not None leaves out what it calls.
int start_frames(const py::object& module_code, const py::object& import_code, bool is_new) {
  if (is_new) {
    forget_modules();
    forget_c_functions();
  }
  if (!module_code.is_none()) {
    Py_XDECREF(hot.module_code);
    hot.module_code = py::object(module_code).release().ptr();
  }
  Py_CLEAR(hot.import_code);
  if (!import_code.is_none()) hot.import_code = py::object(import_code).release().ptr();
  if (!hot.start_thread) {
    const py::object start = py::module_::import("_thread").attr("start_new_thread");
    if (PyCFunction_Check(start.ptr()))
      hot.start_thread = reinterpret_cast<const PyCFunctionObject*>(start.ptr())->m_ml;
  }
  set_frames_began(record::ticks());
  hot.on.store(true, std::memory_order_relaxed);
  count_changes(true);
  int foreign = 0;
  hook_all_threads(&foreign);
  return foreign;
}

// How many threads lost the hook to somebody else on the way.
int stop_frames() {
  hot.on.store(false, std::memory_order_relaxed);
  count_changes(false);
  if (thread_frames && thread_frames->window == lanescope_recording.load(std::memory_order_relaxed))
    pop_to(*thread_frames, 0);
  return unhook_all_threads();
}

// None: nobody.
void listen_to_modules(const py::object& listener) {
  set_module_listener(listener.is_none() ? nullptr : py::object(listener).release().ptr());
}

// Calls `function`, from Python 3.11 on without its frames being recorded.
void call_unrecorded(const py::object& function, const py::args& args) {
#if PY_VERSION_HEX >= 0x030b0000
  PyThreadState* const thread = PyThreadState_Get();
  PyThreadState_EnterTracing(thread);
  struct Leave {
    PyThreadState* thread;
    ~Leave() { PyThreadState_LeaveTracing(thread); }
  } const leave{thread};
#endif
  function(*args);
}

}  // namespace

void bind_tracer(py::module_& m) {
  m.def("start_frames", &start_frames, py::arg("module_code"), py::arg("import_code"),
        py::arg("is_new"));
  m.def("stop_frames", &stop_frames);
  m.def("listen_to_modules", &listen_to_modules, py::arg("listener"));
  m.def("call_unrecorded", &call_unrecorded, py::arg("function"));
  m.def("frame_callbacks", [] {
    PyObject* const callbacks = frames::frame_callbacks();
    if (!callbacks) throw py::error_already_set();
    return py::reinterpret_steal<py::dict>(callbacks);
  });
}

}  // namespace lanescope::python
