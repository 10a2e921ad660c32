#include "frame_modules.h"

#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include "bindings.h"
#include "lanescope/record/thread_writer.h"

namespace lanescope::python::frames {
namespace {

struct KnownModule {
  PyObject* weak = nullptr;  // our weak reference; it tells when the module goes
  std::uint32_t name = 0;
  std::int64_t number = 0;
  std::uint32_t told_in = 0;  // the window in which `module_listener` heard of it
};
struct KnownClass {
  PyObject* weak = nullptr;
  std::int64_t count = 0;
};

struct Modules {
  std::unordered_map<PyObject*, KnownModule> known;
  std::unordered_map<PyObject*, KnownClass> classes;
  std::unordered_map<PyObject*, PyObject*> of_weak;  // a weak reference's module or class
  PyObject* listener = nullptr;
};
// Never destroyed: threads may run beyond main().
Modules& modules() {
  static auto* instance = new Modules;
  return *instance;
}

void forget_near(const PyObject* self) {
  near_modules.remove(key_of_module(self),
                      [self](const NearModule& known) { return known.self == self; });
}

PyObject* forget(PyObject*, PyObject* weak) {
  Modules& all = modules();
  if (const auto gone = all.of_weak.find(weak); gone != all.of_weak.end()) {
    forget_near(gone->second);
    all.known.erase(gone->second);
    all.classes.erase(gone->second);
    all.of_weak.erase(gone);
    Py_DECREF(weak);
  }
  Py_RETURN_NONE;
}

// A weak reference that forget() hears of; null: the object has none, and its address may come
// again. May run the garbage collector, and so anything.
PyObject* watch(PyObject* object) {
  static PyMethodDef definition{"lanescope_forget", forget, METH_O, nullptr};
  static PyObject* const callback = PyCFunction_New(&definition, nullptr);
  PyObject* weak = callback ? PyWeakref_NewRef(object, callback) : nullptr;
  if (!weak) PyErr_Clear();
  return weak;
}

std::string class_name(PyTypeObject* type) {
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    Py_ssize_t size = 0;
    const char* text =
        PyUnicode_AsUTF8AndSize(reinterpret_cast<PyHeapTypeObject*>(type)->ht_name, &size);
    if (text) return std::string(text, static_cast<std::size_t>(size));
    PyErr_Clear();
  }
  const char* last = std::strrchr(type->tp_name, '.');
  return last ? last + 1 : type->tp_name;
}

KnownModule known_module_of(PyObject* self) {
  Modules& all = modules();
  if (const auto known = all.known.find(self); known != all.known.end()) return known->second;
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(self));
  if (!all.classes.contains(type)) {
    PyObject* const weak = watch(type);
    all.classes.try_emplace(type, KnownClass{weak, 0});
    if (weak) all.of_weak.emplace(weak, type);
  }
  PyObject* const weak = watch(self);
  KnownModule made{weak, 0, all.classes[type].count++};
  const std::string text =
      "nn.Module: " + class_name(Py_TYPE(self)) + "_" + std::to_string(made.number);
  made.name = record::intern_text(text.data(), text.size());
  all.known.insert_or_assign(self, made);
  if (weak) all.of_weak.emplace(weak, self);
  return made;
}

// Tells the listener of each module that is called, once in a window. Python does not report the
// listener's own frames, because it is called in a hook.
void tell_of_module(PyObject* self, std::uint32_t window) {
  Modules& all = modules();
  if (!all.listener) return;
  const auto known = all.known.find(self);
  if (known == all.known.end() || std::exchange(known->second.told_in, window) == window) return;
  const py::error_scope exception_on_its_way;
  const py::object listener = py::reinterpret_borrow<py::object>(all.listener);
  Py_XDECREF(PyObject_CallFunctionObjArgs(listener.ptr(), self, nullptr));
  PyErr_Clear();  // its parameters are missing
}

}  // namespace

NamedModule module_of(PyObject* self) {
  const std::uint32_t window = lanescope_recording.load(std::memory_order_relaxed);
  const KnownModule module = known_module_of(self);
  tell_of_module(self, window);
  // Only while it is known: the listener may have run anything.
  if (const auto known = modules().known.find(self);
      known != modules().known.end() && known->second.weak && !find_near_module(self, window)) {
    forget_near(self);
    near_modules.add(key_of_module(self), {self, known->second.number, known->second.name, window});
  }
  return {module.name, module.number};
}

void forget_modules() {
  near_modules.clear();
  Modules& all = modules();
  for (const auto& [weak, object] : std::exchange(all.of_weak, {})) Py_DECREF(weak);
  all.known.clear();
  all.classes.clear();
}

void set_module_listener(PyObject* listener) {
  near_modules.clear();
  Py_XDECREF(std::exchange(modules().listener, listener));
}

}  // namespace lanescope::python::frames
