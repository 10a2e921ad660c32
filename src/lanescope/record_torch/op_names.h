// Finds the text id of an operator's name. For a registered operator this takes one look into a small
// table of the thread; the name's characters are not read.
//
// Part of torch_observer.cpp (compiled with it, against the user's torch). Nothing throws, except
// watch_schemas().
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "lanescope/record/thread_writer.h"

namespace lanescope::record_torch {

// Counts deregistered operators, each before torch frees its schema. Relaxed is enough: a thread can get
// that memory only from the allocator, after the count.
inline std::atomic<std::uint32_t> schema_generation{1};

class SchemaListener final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle&) override {}
  void onOperatorDeregistered(const c10::OperatorHandle&) override {
    schema_generation.fetch_add(1, std::memory_order_relaxed);
  }
};
// Once in a process, before the first callback. May throw.
inline void watch_schemas() {
  static const auto* const handle = new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<SchemaListener>()));
  static_cast<void>(handle);
}

// torch passes a name as a pointer: into the schema of a registered operator, or into a string that lives
// for one call. In a schema, the address identifies the name until an operator is deregistered. The
// address of a string may have another name in the next call, so the characters are compared, too.
struct SchemaName {
  const char* pointer;
  std::uint32_t id;
  std::uint32_t generation;  // 0: empty
};
struct alignas(64) SchemaNames {  // the names of one place, the newest first
  std::array<SchemaName, 4> names;
};
struct OtherName {
  const char* pointer;
  const char* text;  // kept; null: empty
  std::uint32_t id;
};
inline constexpr std::size_t kSchemaPlaces = 128, kOtherPlaces = 16;  // powers of two
struct NamesOfThread {
  std::array<SchemaNames, kSchemaPlaces> schemas;
  std::array<OtherName, kOtherPlaces> others;
};
// Initial-exec: one load instead of a call. The static TLS block has room for a pointer even in a
// library that is loaded late.
inline __thread NamesOfThread* thread_names __attribute__((tls_model("initial-exec"))) = nullptr;
inline __thread bool thread_ends __attribute__((tls_model("initial-exec"))) = false;

struct FreeThreadNames {
  ~FreeThreadNames() {
    thread_ends = true;
    std::free(std::exchange(thread_names, nullptr));
  }
};

[[gnu::noinline]] inline NamesOfThread* make_thread_names() {
  if (thread_ends) return nullptr;
  static thread_local FreeThreadNames at_thread_end;
  static_cast<void>(&at_thread_end);
  constexpr std::size_t kBytes = sizeof(NamesOfThread);
  thread_names = static_cast<NamesOfThread*>(std::aligned_alloc(alignof(NamesOfThread), kBytes));
  if (thread_names) std::memset(static_cast<void*>(thread_names), 0, kBytes);
  return thread_names;
}

inline std::size_t place_of_name(const char* name) {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(name));
  return (address * 0x9e3779b97f4a7c15u) >> 57;  // kSchemaPlaces is 2^7
}

inline bool is_in_schema(const at::RecordFunction& fn, const char* name) noexcept {
  try {
    const auto full = fn.operator_name();
    if (!full) return false;
    const auto known = c10::Dispatcher::singleton().findOp(*full);
    return known && known->hasSchema() && known->schema().name().c_str() == name;
  } catch (...) {  // out of memory
    return false;
  }
}

// A name that find_schema_name() did not find.
[[gnu::noinline]] inline std::uint32_t intern_other_name(const at::RecordFunction& fn,
                                                         const char* name) noexcept {
  NamesOfThread* const all = thread_names ? thread_names : make_thread_names();
  if (!all) return record::intern_text(name, std::strlen(name));
  const std::size_t place = place_of_name(name);
  OtherName& other = all->others[place % kOtherPlaces];
  if (other.pointer == name && other.text && std::strcmp(other.text, name) == 0) return other.id;
  const std::uint32_t generation = schema_generation.load(std::memory_order_relaxed);
  const record::InternedText kept = record::intern_kept_text(name, std::strlen(name));
  // Nodes of a backward pass and ranges of the program have no schema.
  if (fn.scope() == at::RecordScope::FUNCTION && is_in_schema(fn, name)) {
    auto& names = all->schemas[place].names;
    std::shift_right(names.begin(), names.end(), 1);
    names.front() = {name, kept.id, generation};
  } else if (kept.text) {
    other = {name, kept.text, kept.id};
  }
  return kept.id;
}

// Null: the thread's table of schema names does not have it.
[[gnu::always_inline]] inline const SchemaName* find_schema_name(const char* name) {
  if (const NamesOfThread* const all = thread_names) [[likely]] {
    const std::uint32_t generation = schema_generation.load(std::memory_order_relaxed);
    for (const SchemaName& known : all->schemas[place_of_name(name)].names)
      if (known.pointer == name && known.generation == generation) return &known;
  }
  return nullptr;
}

[[gnu::always_inline]] inline std::uint32_t intern_name(const at::RecordFunction& fn,
                                                        const char* name) {
  if (const SchemaName* const known = find_schema_name(name)) return known->id;
  return intern_other_name(fn, name);
}

// RecordFunction::overload_name() came with the same version of torch as capture_overload_names.
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
  if (!overload || !*overload) return intern_name(fn, fn.name());
  char text[512];
  const int size = std::snprintf(text, sizeof text, "%s.%s", fn.name(), overload);
  return size < 0 ? intern_name(fn, fn.name())
                  : record::intern_text(text, std::min<std::size_t>(size, sizeof text - 1));
}

}  // namespace lanescope::record_torch
