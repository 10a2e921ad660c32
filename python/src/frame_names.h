// The names of functions whose frames are recorded: one look into a small table for those that were
// called before.
//
// Python functions are found by code object and instruction, C functions by their method
// definition. All of it with the GIL.
#pragma once
#include <Python.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "python_frames.h"
#include "python_stacks.h"

namespace lanescope::python::frames {

constexpr std::size_t kNames = 4096;   // a power of two
constexpr std::size_t kCNames = 1024;  // a power of two

struct alignas(32) KnownFrame {
  const void* code;
  const void* instruction;
  std::uint32_t generation;  // 0: empty
  std::uint32_t name;
};

// The definition's own words are compared, too: another one may come to its address.
struct alignas(32) KnownFunction {
  const PyMethodDef* definition = nullptr;
  const char* text = nullptr;
  PyCFunction function = nullptr;
  std::uint32_t name = 0;
};

// What each event reads, in one cache line. Guarded by the GIL.
struct alignas(64) Hot {
  std::atomic<bool> on = false;     // relaxed; read without the GIL, too
  PyObject* module_code = nullptr;  // of nn.Module.__call__
  // Of the function that imports a module; null: it is like others.
  PyObject* import_code = nullptr;
  // Python's own, which would have a cache line each in our table of addresses.
  const PyTypeObject* function_type = &PyFunction_Type;
  const PyTypeObject* method_type = &PyMethod_Type;
  const PyTypeObject* method_descriptor_type = &PyMethodDescr_Type;
  const PyTypeObject* c_function_type = &PyCFunction_Type;
  PyObject* none = &_Py_NoneStruct;
  // So far the line. Fewer events need:
  const PyMethodDef* start_thread = nullptr;  // _thread.start_new_thread
};
inline constinit Hot hot;

// A table of `kSize` names, a power of two. Each has two places, in one cache line: of two names that
// were in one place, each call of either would look up the other's again.
template <typename Known, std::size_t kSize>
class NearTable {
 public:
  // Null: it is not there. `is_it` says whether a name is the wanted one.
  template <typename IsIt>
  [[gnu::always_inline]] const Known* find(std::uint64_t key, const IsIt& is_it) const {
    const std::size_t place = place_of(key);
    if (is_it(places_[place])) [[likely]]
      return &places_[place];
    return is_it(places_[place ^ 1]) ? &places_[place ^ 1] : nullptr;
  }
  void add(std::uint64_t key, const Known& known) {
    const std::size_t place = place_of(key);
    places_[place ^ 1] = std::exchange(places_[place], known);
  }
  template <typename IsIt>
  void remove(std::uint64_t key, const IsIt& is_it) {
    const std::size_t place = place_of(key);
    for (const std::size_t at : {place, place ^ 1})
      if (is_it(places_[at])) places_[at] = {};
  }
  void clear() { places_.fill({}); }

 private:
  static_assert(2 * sizeof(Known) == 64);
  static std::size_t place_of(std::uint64_t key) {
    return (key * 0x9e3779b97f4a7c15u) >> (64 - std::countr_zero(kSize));
  }
  alignas(64) std::array<Known, kSize> places_{};
};
inline constinit NearTable<KnownFrame, kNames> known_frames;
inline constinit NearTable<KnownFunction, kCNames> known_functions;

inline std::uint64_t key_in_table(const LanescopeFrame& at) {
  // Twice: since Python 3.11 the instruction is itself an address in the code object.
  return reinterpret_cast<std::uintptr_t>(at.code) +
         2 * reinterpret_cast<std::uintptr_t>(at.instruction);
}
[[gnu::always_inline]] inline const KnownFrame* find_known(const LanescopeFrame& at) {
  return known_frames.find(key_in_table(at), [&at](const KnownFrame& known) {
    return known.code == at.code && known.instruction == at.instruction &&
           known.generation == code_generation();
  });
}

inline bool is_known(const KnownFunction& known, const PyMethodDef* definition) {
  return known.definition == definition && known.text == definition->ml_name &&
         known.function == definition->ml_meth;
}
inline std::uint64_t key_in_table(const PyMethodDef* definition) {
  return reinterpret_cast<std::uintptr_t>(definition);
}
[[gnu::always_inline]] inline const KnownFunction* find_known(const PyMethodDef* definition) {
  return known_functions.find(key_in_table(definition), [definition](const KnownFunction& known) {
    return is_known(known, definition);
  });
}

// The text id of a Python frame's name; 0: it has none. A new name costs some microseconds.
std::uint32_t name_of(const void* frame);
// The same of a C function; `self` is what it is called on, or null.
std::uint32_t name_of_c_function(const PyMethodDef* definition, PyObject* self);
// Forgets the names of C functions: the next object on which a method is called names it again.
void forget_c_functions();

}  // namespace lanescope::python::frames
