// A table of the functions of libcupti that a bench program lists in FUNCTIONS(X):
// `cupti.cuptiSubscribe(...)`. Nothing is linked, so the program runs with any version. Define
// FUNCTIONS before including this.
#pragma once
#include <cupti.h>
#include <dlfcn.h>
#include <x86intrin.h>

#include <cstdint>

namespace {
struct {
#define DECLARE(name) decltype(&::name) name = nullptr;
  FUNCTIONS(DECLARE)
#undef DECLARE
} cupti;

// False: it cannot be loaded, or lacks one of them.
bool load_cupti(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  if (!library) return false;
  bool whole = true;
#define LOAD(name) \
  whole = (cupti.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name))) && whole;
  FUNCTIONS(LOAD)
#undef LOAD
  return whole;
}

std::uint64_t CUPTIAPI ticks() { return __rdtsc(); }
}  // namespace
