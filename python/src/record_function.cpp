// lanescope.record_function: a range from Python, as a plain CPython type because pybind11's call
// path costs several times the range itself. Usable as context manager and as decorator.
//
// Two kinds of listeners. lanescope's recorder is written to directly. torch's own listeners
// (torch.profiler, emit_nvtx, ExecutionTraceObserver) get the range only while there is one: then
// it goes through torch's RecordFunction, where our torch observer sees it like any other; so
// nothing is recorded twice. With the observer loaded it says exactly who listens; without it,
// torch is asked whether anybody does, and the range goes the way of torch's own record_function.
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "bindings.h"
#include "lanescope/record/cost_meter.h"
#include "lanescope/record/shared_range.h"
#include "lanescope/record/thread_writer.h"
#include "python_stacks.h"

namespace lanescope::python {
namespace {

struct RecordFunction {
  PyObject_HEAD PyObject* name;  // as given: str or bytes, else __enter__ fails
  PyObject* text;                // str: the name; null: it is none
  PyObject* args;                // str, bytes or None, shown by torch's listeners only
  PyObject* torch_range;  // while open without the observer and torch listens: torch's own, or null
  LanescopeSharedRange* shared_range;  // while open with the observer and others listen, or null
  std::uint32_t name_id;               // 0: not interned yet
  bool entered;                        // ever
  bool stays_open;                     // when it is left: not run_callbacks_on_exit
  record::RangeToken token;
  PyObject* weaklist;
};

// Of the range that the object has open: its end may come from another thread.
std::uint64_t handle_of(const RecordFunction* self) {
  return reinterpret_cast<std::uintptr_t>(self);
}

PyTypeObject* record_function_type = nullptr;

PyObject* new_ref(PyObject* object) {  // Py_NewRef came with Python 3.10
  Py_INCREF(object);
  return object;
}

// torch.autograd.profiler.__dict__ once the program has imported it; never by us.
PyObject* torch_profiler_dict = nullptr;
PyObject* enabled_key = nullptr;
PyObject* module_key = nullptr;
PyObject* record_function_key = nullptr;

// at::hasCallbacks(), whose name is the same in every build of torch; null: this torch has none.
using HasCallbacks = bool (*)();
HasCallbacks find_has_callbacks() {
  void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);  // once; it stays
  void* found = torch ? dlsym(torch, "_ZN2at12hasCallbacksEv") : nullptr;
  return reinterpret_cast<HasCallbacks>(found);
}

bool torch_is_listening() {
  if (!torch_profiler_dict) {
    PyObject* module = PyDict_GetItemWithError(PyImport_GetModuleDict(), module_key);
    if (!module || !PyModule_Check(module)) return false;
    torch_profiler_dict = new_ref(PyModule_GetDict(module));
  }
  static const HasCallbacks has_callbacks = find_has_callbacks();
  if (has_callbacks) return has_callbacks();
  return PyDict_GetItemWithError(torch_profiler_dict, enabled_key) == Py_True;
}

// An opened torch range, or null: torch's listeners then miss this one, which is no reason to stop
// the program.
PyObject* open_torch_range(const RecordFunction* self) {
  if (!torch_profiler_dict) {
    PyObject* module = PyDict_GetItemWithError(PyImport_GetModuleDict(), module_key);
    if (module && PyModule_Check(module)) torch_profiler_dict = new_ref(PyModule_GetDict(module));
  }
  PyObject* maker = torch_profiler_dict
                        ? PyDict_GetItemWithError(torch_profiler_dict, record_function_key)
                        : nullptr;
  PyObject* range =
      maker ? PyObject_CallFunctionObjArgs(maker, self->name, self->args, nullptr) : nullptr;
  PyObject* entered = range ? PyObject_CallMethod(range, "__enter__", nullptr) : nullptr;
  if (!entered) {
    PyErr_Clear();
    Py_XDECREF(range);
    return nullptr;
  }
  Py_DECREF(entered);
  return range;
}

void close_torch_range(RecordFunction* self) {
  PyObject* range = self->torch_range;
  self->torch_range = nullptr;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* left = PyObject_CallMethod(range, "__exit__", "OOO", Py_None, Py_None, Py_None);
  if (!left) PyErr_Clear();
  Py_XDECREF(left);
  Py_DECREF(range);
  PyErr_Restore(type, value, traceback);
}

std::string_view utf8_of(PyObject* text) {
  Py_ssize_t size = 0;
  if (const char* data = PyUnicode_AsUTF8AndSize(text, &size)) {
    return {data, static_cast<std::size_t>(size)};
  }
  PyErr_Clear();  // lone surrogates
  return "(name that is not UTF-8)";
}

std::string_view text_of_args(PyObject* args) {
  if (PyUnicode_Check(args)) return utf8_of(args);
  if (PyBytes_Check(args))
    return {PyBytes_AS_STRING(args), static_cast<std::size_t>(PyBytes_GET_SIZE(args))};
  return {};
}

// Shows the range to torch's listeners, if there are any. True: the observer has recorded it.
bool begin_for_torch(RecordFunction* self) {
  if (!lanescope_range_listeners.load(std::memory_order_relaxed)) {
    if (torch_is_listening()) self->torch_range = open_torch_range(self);
    return false;
  }
  bool recorded = false;
  self->shared_range =
      record::open_shared_range(utf8_of(self->text), text_of_args(self->args), &recorded);
  return recorded;
}

void begin(RecordFunction* self) {
  if (begin_for_torch(self) || !record::is_recording()) return;  // also while nothing is recorded
  const record::RangeCall call;
  if (call.is_paused() && !record::is_step_name(utf8_of(self->text))) [[unlikely]]
    return record::count_left_out_range();
  if (self->name_id == 0) {
    const std::string_view name = utf8_of(self->text);
    self->name_id = record::intern_text(name.data(), name.size());
  }
  record::RangeInfo info;
  info.name = self->name_id;
  info.handle = handle_of(self);
  if (record::record_options() & LANESCOPE_RECORD_STACK) {
    LanescopeStackPosition position{};
    info.detail = capture_stack(&position, 0);
  }
  self->token = record::begin_range(info);
}

// Also on another thread than the one on which the range began.
void end_for_torch(RecordFunction* self) {
  if (self->torch_range) close_torch_range(self);
  record::close_shared_range(std::exchange(self->shared_range, nullptr));
}

void end(RecordFunction* self) {
  if (self->token.sequence != 0) {
    const record::RangeCall call;
    record::end_range(self->token);
    self->token = {};
  }
  end_for_torch(self);
}

// end() on a thread that need not be the one on which the range began.
void end_anywhere(RecordFunction* self) {
  if (std::exchange(self->token, {}).sequence != 0) record::end_nested(handle_of(self));
  end_for_torch(self);
}

RecordFunction* self_of(PyObject* object) { return reinterpret_cast<RecordFunction*>(object); }

// A new reference to the name as str; null without an error: it is none. torch takes bytes as well.
PyObject* text_of_name(PyObject* name) {
  if (PyUnicode_Check(name)) return new_ref(name);
  if (PyBytes_Check(name))
    return PyUnicode_DecodeUTF8(PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), "replace");
  return nullptr;
}

// Anything is a name until the range is entered, as in torch.
bool set_name(RecordFunction* self, PyObject* name) {
  PyObject* text = text_of_name(name);
  if (!text && PyErr_Occurred()) return false;
  Py_XSETREF(self->text, text);
  PyObject* before = std::exchange(self->name, new_ref(name));
  Py_XDECREF(before);
  self->name_id = 0;
  return true;
}

// Text of lone surrogates has no UTF-8, and torch refuses it, too. Nearly all texts are ASCII.
bool has_utf8(PyObject* object) {
  if (!PyUnicode_Check(object) || PyUnicode_IS_COMPACT_ASCII(object)) [[likely]]
    return true;
  Py_ssize_t size = 0;
  if (PyUnicode_AsUTF8AndSize(object, &size)) return true;
  PyErr_Clear();
  return false;
}

bool is_text(PyObject* object) { return PyUnicode_Check(object) || PyBytes_Check(object); }

// False: Python has the error set that torch raises, too.
bool check_texts(const RecordFunction* self) {
  const bool has_name = self->text && has_utf8(self->text);
  if (has_name && (self->args == Py_None || (is_text(self->args) && has_utf8(self->args))))
      [[likely]]
    return true;
  const char* what = has_name ? "args" : "name";
  PyObject* found = has_name ? self->args : self->name;
  if (is_text(found))
    PyErr_Format(PyExc_RuntimeError,
                 "record_function: expected %s that UTF-8 can encode, found lone surrogates", what);
  else
    PyErr_Format(PyExc_RuntimeError, "record_function: expected %s of type str, found %.100s", what,
                 Py_TYPE(found)->tp_name);
  return false;
}

bool set_args(RecordFunction* self, PyObject* args) {
  PyObject* before = std::exchange(self->args, new_ref(args));
  Py_XDECREF(before);
  return true;
}

PyObject* make(PyObject* name, PyObject* args) {
  PyObject* object = record_function_type->tp_alloc(record_function_type, 0);
  if (!object) return nullptr;
  RecordFunction* self = self_of(object);
  set_args(self, args);
  if (set_name(self, name)) return object;
  Py_DECREF(object);
  return nullptr;
}

// Of a subclass as well, whose __init__ may have other arguments.
PyObject* type_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* object = type->tp_alloc(type, 0);
  PyObject* name = object ? PyUnicode_FromString("") : nullptr;
  if (!name) {
    Py_XDECREF(object);
    return nullptr;
  }
  set_args(self_of(object), Py_None);
  set_name(self_of(object), name);
  Py_DECREF(name);
  return object;
}

int type_init(PyObject* object, PyObject* positional, PyObject* keywords) {
  static const char* names[] = {"name", "args", nullptr};
  PyObject* name = nullptr;
  PyObject* args = Py_None;
  if (!PyArg_ParseTupleAndKeywords(positional, keywords, "O|O:record_function",
                                   const_cast<char**>(names), &name, &args)) {
    return -1;
  }
  return set_name(self_of(object), name) && set_args(self_of(object), args) ? 0 : -1;
}

// Only of this type, not of subclasses.
PyObject* type_vectorcall(PyObject* type, PyObject* const* args, std::size_t flags,
                          PyObject* keywords) {
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (count == 1 && !keywords) return make(args[0], Py_None);
  PyObject* positional = PyTuple_New(count);
  PyObject* named = PyDict_New();
  PyObject* made = nullptr;
  if (positional && named) {
    for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(positional, i, new_ref(args[i]));
    const Py_ssize_t named_count = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    bool ok = true;
    for (Py_ssize_t i = 0; i < named_count && ok; ++i) {
      ok = PyDict_SetItem(named, PyTuple_GET_ITEM(keywords, i), args[count + i]) == 0;
    }
    if (ok) made = type_new(reinterpret_cast<PyTypeObject*>(type), nullptr, nullptr);
    if (made && type_init(made, positional, named) != 0) Py_CLEAR(made);
  }
  Py_XDECREF(positional);
  Py_XDECREF(named);
  return made;
}

void dealloc(PyObject* object) {
  RecordFunction* self = self_of(object);
  end(self);
  if (self->weaklist) PyObject_ClearWeakRefs(object);
  Py_XDECREF(self->name);
  Py_XDECREF(self->text);
  Py_XDECREF(self->args);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
}

PyObject* enter(PyObject* object, PyObject*) {
  RecordFunction* self = self_of(object);
  if (!check_texts(self)) return nullptr;
  end(self);  // entered twice without an exit: the first range ends here
  self->entered = true;
  begin(self);
  return new_ref(object);
}

PyObject* exit(PyObject* object, PyObject* const*, Py_ssize_t) {
  RecordFunction* self = self_of(object);
  if (self->stays_open) Py_RETURN_NONE;
  if (!self->entered) {
    PyErr_SetString(PyExc_AssertionError, "record_function: left before it was entered");
    return nullptr;
  }
  end(self);
  Py_RETURN_NONE;
}

// The range ends when the future is done, on whatever thread; returns a future for what follows that.
PyObject* end_with_future(PyObject* object, PyObject* future) {
  RecordFunction* self = self_of(object);
  if (std::exchange(self->stays_open, true)) {
    PyErr_SetString(PyExc_RuntimeError, "_call_end_callbacks_on_future can only be called once.");
    return nullptr;
  }
  if (!self->entered) {
    PyErr_SetString(PyExc_AssertionError, "record_function: the range was not entered");
    return nullptr;
  }
  PyObject* module = PyImport_ImportModule("lanescope._decorate");
  if (!module) return nullptr;
  PyObject* after = PyObject_CallMethod(module, "end_with_future", "OO", object, future);
  Py_DECREF(module);
  return after;
}

PyObject* end_range_anywhere(PyObject* object, PyObject*) {
  end_anywhere(self_of(object));
  Py_RETURN_NONE;
}

// As a decorator: every call opens a range of its own, so recursion and threads nest as they
// should.
PyObject* call(PyObject* object, PyObject* positional, PyObject* keywords) {
  PyObject* function = nullptr;
  static const char* names[] = {"func", nullptr};
  if (!PyArg_ParseTupleAndKeywords(positional, keywords, "O:record_function",
                                   const_cast<char**>(names), &function)) {
    return nullptr;
  }
  PyObject* module = PyImport_ImportModule("lanescope._decorate");
  if (!module) return nullptr;
  const RecordFunction* self = self_of(object);
  const bool is_ours =
      Py_TYPE(object) == record_function_type;  // else it may have its own __enter__
  PyObject* wrapped =
      is_ours ? PyObject_CallMethod(module, "decorate", "OOO", self->name, self->args, function)
              : PyObject_CallMethod(module, "decorate_with", "OO", object, function);
  Py_DECREF(module);
  return wrapped;
}

// For copy and pickle: a new object with the attributes, which has no range open. Only a subclass has a __dict__.
PyObject* reduce(PyObject* object, PyObject*) {
  const RecordFunction* self = self_of(object);
  PyObject* module = PyImport_ImportModule("copyreg");
  PyObject* make_new = module ? PyObject_GetAttrString(module, "__newobj__") : nullptr;
  Py_XDECREF(module);
  if (!make_new) return nullptr;
  PyObject* own = PyObject_GetAttrString(object, "__dict__");
  if (!own) {
    PyErr_Clear();
    own = new_ref(Py_None);
  }
  return Py_BuildValue("N(O)(N{sOsOsO})", make_new, Py_TYPE(object), own, "name", self->name,
                       "args", self->args, "run_callbacks_on_exit",
                       self->stays_open ? Py_False : Py_True);
}

PyObject* repr(PyObject* object) {
  return PyUnicode_FromFormat("lanescope.record_function(%R)", self_of(object)->name);
}
PyObject* get_name(PyObject* object, void*) { return new_ref(self_of(object)->name); }
PyObject* get_args(PyObject* object, void*) { return new_ref(self_of(object)->args); }
int put_name(PyObject* object, PyObject* name, void*) {  // from the next __enter__ on
  if (name) return set_name(self_of(object), name) ? 0 : -1;
  PyErr_SetString(PyExc_AttributeError, "record_function: the name cannot be deleted");
  return -1;
}
int put_args(PyObject* object, PyObject* args, void*) {
  return set_args(self_of(object), args ? args : Py_None) ? 0 : -1;
}

PyObject* get_record(PyObject* object, void*) {
  return new_ref(self_of(object)->entered ? object : Py_None);
}
PyObject* get_ends(PyObject* object, void*) {
  return PyBool_FromLong(self_of(object)->stays_open ? 0 : 1);
}
int put_ends(PyObject* object, PyObject* value, void*) {
  const int ends = value ? PyObject_IsTrue(value) : 1;
  if (ends >= 0) self_of(object)->stays_open = ends == 0;
  return ends < 0 ? -1 : 0;
}

constexpr const char* kDoc =
    "record_function(name, args=None)\n--\n\n"
    "A named range of this thread: a context manager, or a decorator whose every call is a "
    "range.\n\n"
    "Recorded while a lanescope profile records; shown to torch.profiler, emit_nvtx and execution "
    "traces while one of\n"
    "them is on. `args` is a text that is shown as the range's input. May be used again after it "
    "was left; for nesting make a "
    "new one. A subclass may extend __init__, __enter__ and __exit__.";

// So that a change of the ancestor also ends what Python remembers of attributes of `type`.
bool add_subclass(PyTypeObject* ancestor, PyTypeObject* type) {
  auto* subclasses = reinterpret_cast<PyObject*>(ancestor->tp_subclasses);
  if (!subclasses) {
    subclasses = PyDict_New();
    ancestor->tp_subclasses = subclasses;
  }
  PyObject* key = PyLong_FromVoidPtr(type);  // as Python itself keeps them
  PyObject* reference = PyWeakref_NewRef(reinterpret_cast<PyObject*>(type), nullptr);
  const bool is_added =
      subclasses && key && reference && PyDict_SetItem(subclasses, key, reference) == 0;
  Py_XDECREF(key);
  Py_XDECREF(reference);
  return is_added;
}

// For isinstance() and issubclass(), as torch's class has it. Deriving from a class that was written in Python
// would give each range a __dict__ and the garbage collector's header, and so make it slower.
// So that class is added once this one is ready: to the bases, and to the order in which attributes
// are looked up.
bool add_to_ancestors(PyTypeObject* type, const char* module_name, const char* class_name) {
  PyObject* module = PyImport_ImportModule(module_name);
  PyObject* ancestor = module ? PyObject_GetAttrString(module, class_name) : nullptr;
  Py_XDECREF(module);
  if (!ancestor) return false;
  const bool is_class =
      PyType_Check(ancestor) != 0 &&
      PyType_HasFeature(reinterpret_cast<PyTypeObject*>(ancestor), Py_TPFLAGS_HEAPTYPE);
  PyObject* order = is_class ? PyTuple_Pack(3, reinterpret_cast<PyObject*>(type), ancestor,
                                            reinterpret_cast<PyObject*>(&PyBaseObject_Type))
                             : nullptr;
  const bool is_added = order && add_subclass(reinterpret_cast<PyTypeObject*>(ancestor), type);
  Py_DECREF(ancestor);
  if (!is_added) {
    Py_XDECREF(order);
    return !PyErr_Occurred();  // somebody has put something else in the class's place
  }
  // Also among the bases: before Python remembers an attribute, it asks all bases to tell of changes.
  // `tp_base`, from which memory and slots come, stays `object`.
  PyObject* bases = PyTuple_Pack(1, PyTuple_GET_ITEM(order, 1));
  if (!bases) {
    Py_DECREF(order);
    return false;
  }
  Py_SETREF(type->tp_bases, bases);
  Py_SETREF(type->tp_mro, order);
  PyType_Modified(type);
  return true;
}

PyTypeObject* make_type() {
  static std::array<PyMethodDef, 6> methods = {{
      {"__enter__", enter, METH_NOARGS, "Begin the range."},
      {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(exit)), METH_FASTCALL,
       "End the range."},
      {"_call_end_callbacks_on_future", end_with_future, METH_O,
       "The range ends when the future is done, not at __exit__. Once for an object. Returns a "
       "future with the same value that is done after that."},
      {"_end_range", end_range_anywhere, METH_NOARGS, "Ends the range, from any thread."},
      {"__reduce__", reduce, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr},
  }};
  static std::array<PyGetSetDef, 5> properties = {{
      {"name", get_name, put_name, "The label.", nullptr},
      {"args", get_args, put_args, "As given.", nullptr},
      {"record", get_record, nullptr,
       "None before the range is entered, then this object; torch's handle of a range, in torch.",
       nullptr},
      {"run_callbacks_on_exit", get_ends, put_ends,
       "False: __exit__ leaves the range open. It ends when it is entered again or destroyed.",
       nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  }};
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  type.tp_name = "lanescope.record_function";
  type.tp_basicsize = sizeof(RecordFunction);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_doc = kDoc;
  type.tp_new = type_new;
  type.tp_init = type_init;
  type.tp_vectorcall = type_vectorcall;
  type.tp_dealloc = dealloc;
  type.tp_call = call;
  type.tp_repr = repr;
  type.tp_weaklistoffset = offsetof(RecordFunction, weaklist);
  type.tp_methods = methods.data();
  type.tp_getset = properties.data();
  return PyType_Ready(&type) == 0 && add_to_ancestors(&type, "contextlib", "ContextDecorator")
             ? &type
             : nullptr;
}

}  // namespace

void bind_record_function(py::module_& m) {
  enabled_key = PyUnicode_InternFromString("_is_profiler_enabled");
  module_key = PyUnicode_InternFromString("torch.autograd.profiler");
  record_function_type = make_type();
  record_function_key = PyUnicode_InternFromString("record_function");
  if (!record_function_type || !enabled_key || !module_key || !record_function_key)
    throw py::error_already_set();
  m.def(
      "set_of_record_function",
      [](const std::string& name, const py::object& value) {
        PyObject* attributes = record_function_type->tp_dict;
        if (PyDict_SetItemString(attributes, name.c_str(), value.ptr()) != 0)
          throw py::error_already_set();
        PyType_Modified(record_function_type);
      },
      py::arg("name"), py::arg("value"));
  m.add_object("record_function", py::reinterpret_borrow<py::object>(
                                      reinterpret_cast<PyObject*>(record_function_type)));
}

}  // namespace lanescope::python
