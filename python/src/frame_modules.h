// The names and numbers of nn.Modules whose calls are recorded: "nn.Module: Linear_0" is the first
// Linear that was called. All of it with the GIL.
#pragma once
#include <Python.h>

#include <cstdint>

namespace lanescope::python::frames {

struct NamedModule {
  std::uint32_t name = 0;  // text id
  std::int64_t number = 0;
};
// Also reports the module to the listener, once in each window, which may run any Python code.
NamedModule module_of(PyObject* self);

// Modules are numbered from 0 again.
void forget_modules();

// A new reference to what is called with each module; null: nobody.
void set_module_listener(PyObject* listener);

}  // namespace lanescope::python::frames
