// The text ids of operators' names: one comparison for a name that the thread has had before.
//
// Part of torch_observer.cpp (compiled with it, against the user's torch). Nothing throws.
#pragma once
#include <ATen/record_function.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "lanescope/record/thread_writer.h"

namespace lanescope::record_torch {

// Names come as pointers: into operator schemas, which stay, or into strings that live for one
// call, so one address can have many names. A thread remembers the last name at an address and
// compares the characters, which costs a third of hashing them.
struct alignas(128) SeenName {  // two cache lines: the names of a backward pass's nodes are long
  const char* pointer;
  std::uint32_t id;
  char text[116];  // ends with 0; longer names are found by their hash
};
inline constexpr std::size_t kSeenNames = 512;
// Initial-exec: one load instead of a call. The static TLS block has room for a pointer even in a
// library that is loaded late.
inline __thread SeenName* seen_names __attribute__((tls_model("initial-exec"))) = nullptr;
inline __thread bool thread_ends __attribute__((tls_model("initial-exec"))) = false;

struct FreeSeenNames {
  ~FreeSeenNames() {
    thread_ends = true;
    std::free(std::exchange(seen_names, nullptr));
  }
};

[[gnu::noinline]] inline std::uint32_t intern_new_name(const char* name, std::size_t place) {
  const std::size_t size = std::strlen(name);
  const std::uint32_t id = record::intern_text(name, size);
  if (!seen_names && !thread_ends) {
    static thread_local FreeSeenNames at_thread_end;
    static_cast<void>(&at_thread_end);
    seen_names = static_cast<SeenName*>(
        std::aligned_alloc(alignof(SeenName), kSeenNames * sizeof(SeenName)));
    if (seen_names) std::memset(static_cast<void*>(seen_names), 0, kSeenNames * sizeof(SeenName));
  }
  if (seen_names && size < sizeof SeenName::text) {
    seen_names[place].pointer = name;
    seen_names[place].id = id;
    std::memcpy(seen_names[place].text, name, size + 1);
  }
  return id;
}

inline std::size_t place_of_name(const char* name) {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(name));
  return (address * 0x9e3779b97f4a7c15u) >> 55;  // kSeenNames is 2^9
}

// Null: the thread has not had it before.
[[gnu::always_inline]] inline const SeenName* seen_name(const char* name) {
  const SeenName* const all = seen_names;
  if (!all) [[unlikely]]
    return nullptr;
  const SeenName* const seen = all + place_of_name(name);
  return seen->pointer == name && std::strcmp(seen->text, name) == 0 ? seen : nullptr;
}

[[gnu::always_inline]] inline std::uint32_t intern_name(const char* name) {
  if (const SeenName* const seen = seen_name(name)) [[likely]]
    return seen->id;
  return intern_new_name(name, place_of_name(name));
}

// RecordFunction::overload_name() and torch.profiler's capture_overload_names came together.
template <typename Function>
inline const char* overload_of(const Function& fn) {
  if constexpr (requires { fn.overload_name(); })
    return fn.overload_name();
  else
    return "";
}

// With capture_overload_names, torch.profiler shows "aten::add.Tensor".
inline std::uint32_t intern_overload(const at::RecordFunction& fn) {
  const char* overload = overload_of(fn);
  if (!overload || !*overload) return intern_name(fn.name());
  char text[512];
  const int size = std::snprintf(text, sizeof text, "%s.%s", fn.name(), overload);
  return size < 0 ? intern_name(fn.name())
                  : record::intern_text(text, std::min<std::size_t>(size, sizeof text - 1));
}

}  // namespace lanescope::record_torch
