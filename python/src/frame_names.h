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

#include "python_frames.h"
#include "python_stacks.h"

namespace lanescope::python::frames {

constexpr std::size_t kNames = 4096;   // a power of two
constexpr std::size_t kCNames = 1024;  // a power of two

struct alignas(32) KnownFrame {  // in one cache line
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

// What each event reads. Guarded by the GIL.
struct alignas(64) Hot {
  std::atomic<bool> on = false;     // relaxed; read without the GIL, too
  PyObject* module_code = nullptr;  // of nn.Module.__call__
  // Of the function that imports a module; null: it is like others.
  PyObject* import_code = nullptr;
  const PyMethodDef* start_thread = nullptr;  // _thread.start_new_thread
};
inline constinit Hot hot;
inline constinit std::array<KnownFrame, kNames> known_frames{};
inline constinit std::array<KnownFunction, kCNames> known_functions{};

// A place in a table of `size`, a power of two.
constexpr std::size_t place_of(std::uint64_t key, std::size_t size) {
  return (key * 0x9e3779b97f4a7c15u) >> (64 - std::countr_zero(size));
}

inline KnownFrame& place_of_frame(const LanescopeFrame& at) {
  // Twice: since Python 3.11 the instruction is itself an address in the code object.
  const std::uint64_t key = reinterpret_cast<std::uintptr_t>(at.code) +
                            2 * reinterpret_cast<std::uintptr_t>(at.instruction);
  return known_frames[place_of(key, kNames)];
}
inline bool is_known(const KnownFrame& known, const LanescopeFrame& at) {
  return known.code == at.code && known.instruction == at.instruction &&
         known.generation == code_generation();
}

inline KnownFunction& place_of_function(const PyMethodDef* definition) {
  return known_functions[place_of(reinterpret_cast<std::uintptr_t>(definition), kCNames)];
}
inline bool is_known(const KnownFunction& known, const PyMethodDef* definition) {
  return known.definition == definition && known.text == definition->ml_name &&
         known.function == definition->ml_meth;
}

// The text id of a Python frame's name; 0: it has none. A new name costs some microseconds.
std::uint32_t name_of(const void* frame);
// The same of a C function; `self` is what it is called on, or null.
std::uint32_t name_of_c_function(const PyMethodDef* definition, PyObject* self);
// Forgets the names of C functions: the next object on which a method is called names it again.
void forget_c_functions();

}  // namespace lanescope::python::frames
