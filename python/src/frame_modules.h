// The names and numbers of nn.Modules whose calls are recorded: "nn.Module: Linear_0" is the first
// Linear that was called. All of it with the GIL.
#pragma once
#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "frame_names.h"

namespace lanescope::python::frames {

struct NamedModule {
  std::uint32_t name = 0;  // text id
  std::int64_t number = 0;
};
// Also reports the module to the listener, once in each window, which may run any Python code.
NamedModule module_of(PyObject* self);

// Those that were called in the window `told_in`, each as long as it lives.
struct alignas(32) NearModule {
  const void* self = nullptr;
  std::int64_t number = 0;
  std::uint32_t name = 0;
  std::uint32_t told_in = 0;
};
constexpr std::size_t kNearModules = 512;  // a power of two
inline constinit NearTable<NearModule, kNearModules> near_modules;
inline std::uint64_t key_of_module(const void* self) {
  return reinterpret_cast<std::uintptr_t>(self);
}
// Null: ask module_of(), which tells the listener.
inline const NearModule* find_near_module(const void* self, std::uint32_t window) {
  return near_modules.find(key_of_module(self), [=](const NearModule& known) {
    return known.self == self && known.told_in == window;
  });
}

// Modules are numbered from 0 again.
void forget_modules();

// A new reference to what is called with each module; null: nobody.
void set_module_listener(PyObject* listener);

}  // namespace lanescope::python::frames
