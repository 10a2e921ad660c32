// Two functions that torch calls for each node of a backward pass, made faster while torch has our callback.
//
// Problem: with a callback, torch does work around each node that has nothing to do with the callback.
// - set_record_function_tls_() gives the thread the list of callbacks that the forward pass had, before the node and
//   after it. It locks a mutex, allocates, and sorts all callbacks by scope again, although nearly always nothing changes.
// - demangle() makes the text "torch::autograd::AccumulateGrad" from a type's name, twice for each parameter.
// In a training step of small operators these two are 31 % of what recording with stacks adds on Python 3.12, and 24 % on
// Python 3.11, where the interpreter's part is larger (docs/decisions/torch_observer.md, python_frames.md).
//
// Idea: libtorch_cpu calls both through its table of imported functions (ELF's PLT and GOT), because both are
// exported. The dynamic linker writes that table at run time, so it stays writable. While our callback is there, its two
// entries point to the functions here, which give the same results with less work. The table is left alone when it
// is read-only (linked with `-z now`), when torch calls the functions in another way, and with LANESCOPE_TORCH_SHORTCUTS=0.
//
// Cost: a search through the table, about a millisecond, once in a process.
//
// Part of torch_observer.cpp (compiled with it, against the user's torch). docs/decisions/torch_observer.md.
#pragma once
#include <ATen/record_function.h>
#include <c10/util/Type.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace lanescope::record_torch {

// ---- the functions that torch calls instead

template <typename List>
bool are_both_empty(const List& one, const List& other) {
  if constexpr (requires { one.sorted_tls_callbacks_.empty() && one.tls_record_function_enabled_; })
    return one.sorted_tls_callbacks_.empty() && other.sorted_tls_callbacks_.empty() &&
           one.tls_record_function_enabled_ == other.tls_record_function_enabled_;
  else
    return false;
}

// The thread's own list is empty before and after, unless another profiler has callbacks for one thread. Torch sees a
// change of the process's callbacks by their version at the next operator.
inline void set_thread_callbacks(const at::RecordFunctionTLS& wanted) {
  if (!are_both_empty(wanted, at::get_record_function_tls_())) at::set_record_function_tls_(wanted);
}

struct DemangledName {
  std::string mangled, text;
};
inline constexpr std::size_t kDemangledNames =
    16;  // a power of two; most nodes have names of their own
inline __thread DemangledName* demangled_names __attribute__((tls_model("initial-exec"))) = nullptr;
inline __thread bool demangled_end __attribute__((tls_model("initial-exec"))) = false;

struct FreeDemangledNames {
  ~FreeDemangledNames() {
    demangled_end = true;
    delete[] std::exchange(demangled_names, nullptr);
  }
};

[[gnu::noinline]] inline DemangledName* make_demangled_names() {
  if (demangled_end) return nullptr;
  static thread_local FreeDemangledNames at_thread_end;
  static_cast<void>(&at_thread_end);
  return demangled_names = new (std::nothrow) DemangledName[kDemangledNames];
}

// A library that is unloaded may leave its type's address to another type, so the characters are compared.
inline std::string demangle_once(const char* mangled) {
  DemangledName* const all = demangled_names ? demangled_names : make_demangled_names();
  if (!all || !mangled) return c10::demangle(mangled);
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(mangled));
  DemangledName& known = all[(address * 0x9e3779b97f4a7c15u) >> 60];
  if (known.mangled.empty() || std::strcmp(known.mangled.c_str(), mangled) != 0) {
    std::string text = c10::demangle(mangled);
    known.mangled = mangled;
    known.text = std::move(text);
  }
  return known.text;
}

// ---- the table of imported functions

// The library that has torch's record functions, as the dynamic linker loaded it.
class LoadedLibrary {
 public:
  LoadedLibrary() {
    Dl_info found;
    void* map = nullptr;
    if (dladdr1(reinterpret_cast<const void*>(&at::removeCallback), &found, &map,
                RTLD_DL_LINKMAP) == 0 ||
        !map)
      return;
    base_ = static_cast<link_map*>(map)->l_addr;
    read_dynamic(static_cast<link_map*>(map)->l_ld);
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* self) {
          return static_cast<LoadedLibrary*>(self)->read_segments(*info);
        },
        this);
  }

  // The entry through which the library calls the function of that name, or, where it defines the function itself, at
  // that address. Null: there is none that may be written.
  std::uintptr_t* entry_of(const char* name, std::uintptr_t address) const {
    if (!symbols_ || !texts_ || !relocations_ || !has_addends_) return nullptr;
    for (std::size_t at = 0; at < relocation_bytes_ / sizeof(ElfW(Rela)); ++at) {
      const ElfW(Rela)& relocation = relocations_[at];
#if defined(__x86_64__)
      if (ELF64_R_TYPE(relocation.r_info) != R_X86_64_JUMP_SLOT) continue;
#elif defined(__aarch64__)
      if (ELF64_R_TYPE(relocation.r_info) != R_AARCH64_JUMP_SLOT) continue;
#else
      continue;
#endif
      const ElfW(Sym)& symbol = symbols_[ELF64_R_SYM(relocation.r_info)];
      const bool is_it = symbol.st_shndx == SHN_UNDEF
                             ? *name && std::strcmp(texts_ + symbol.st_name, name) == 0
                             : base_ + symbol.st_value == address;
      if (!is_it) continue;
      const std::uintptr_t place = base_ + relocation.r_offset;
      return is_writable(place) ? reinterpret_cast<std::uintptr_t*>(place) : nullptr;
    }
    return nullptr;
  }

  // True: code of the library itself, such as the stub that an entry points to before its first call.
  bool is_own_code(std::uintptr_t place) const { return code_.has(place); }

 private:
  struct Span {
    std::uintptr_t begin = 0, end = 0;
    bool has(std::uintptr_t place) const {
      return begin <= place && place + sizeof(std::uintptr_t) <= end;
    }
  };

  // glibc has added the base to these addresses, other C libraries leave that to the reader.
  template <typename What>
  const What* at(ElfW(Addr) address) const {
    return reinterpret_cast<const What*>(address < base_ ? base_ + address : address);
  }
  void read_dynamic(const ElfW(Dyn) * entry) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_SYMTAB) symbols_ = at<ElfW(Sym)>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_STRTAB) texts_ = at<char>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_JMPREL) relocations_ = at<ElfW(Rela)>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_PLTRELSZ) relocation_bytes_ = entry->d_un.d_val;
      if (entry->d_tag == DT_PLTREL) has_addends_ = entry->d_un.d_val == DT_RELA;
    }
  }
  int read_segments(const dl_phdr_info& info) {
    if (info.dlpi_addr != base_) return 0;
    const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info.dlpi_phdr[i];
      const Span span{base_ + segment.p_vaddr, base_ + segment.p_vaddr + segment.p_memsz};
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) && writable_count_ < kMostSegments)
        writable_[writable_count_++] = span;
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X)) code_ = span;
      // The dynamic linker makes whole pages of it read-only.
      if (segment.p_type == PT_GNU_RELRO)
        read_only_ = {span.begin / page * page, span.end / page * page};
    }
    return 1;
  }
  bool is_writable(std::uintptr_t place) const {
    for (std::size_t i = 0; i < writable_count_; ++i)
      if (writable_[i].has(place)) return !(place >= read_only_.begin && place < read_only_.end);
    return false;
  }

  static constexpr std::size_t kMostSegments = 8;
  std::uintptr_t base_ = 0;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* texts_ = nullptr;
  const ElfW(Rela) * relocations_ = nullptr;
  std::size_t relocation_bytes_ = 0;
  bool has_addends_ = false;
  Span writable_[kMostSegments];
  std::size_t writable_count_ = 0;
  Span read_only_, code_;
};

// One entry. Other threads may call through it at any time: it is written in one store.
class ImportedFunction {
 public:
  // `function`: torch's own, defined in the library if `name` is empty.
  void find(const LoadedLibrary& library, const char* name, std::uintptr_t function) {
    entry_ = library.entry_of(name, function);
    if (!entry_) return;
    const std::uintptr_t now = std::atomic_ref(*entry_).load(std::memory_order_relaxed);
    if (now != function && !library.is_own_code(now)) entry_ = nullptr;  // another tool's
  }
  void replace(std::uintptr_t with) {
    if (!entry_ || with_ != 0) return;
    before_ = std::atomic_ref(*entry_).exchange(with, std::memory_order_relaxed);
    with_ = with;
  }
  // Leaves the entry alone if somebody else has written it since.
  void restore() {
    std::uintptr_t expected = with_;
    if (entry_ && with_ != 0)
      std::atomic_ref(*entry_).compare_exchange_strong(expected, before_,
                                                       std::memory_order_relaxed);
    with_ = 0;
  }
  bool is_replaced() const { return with_ != 0; }

 private:
  std::uintptr_t* entry_ = nullptr;
  std::uintptr_t before_ = 0, with_ = 0;
};

// For the observer's start and stop, with its mutex held.
class TorchShortcuts {
 public:
  void take() {
    if (!is_searched_) find();
    set_callbacks_.replace(reinterpret_cast<std::uintptr_t>(&set_thread_callbacks));
    demangle_.replace(reinterpret_cast<std::uintptr_t>(&demangle_once));
  }
  void leave() {
    set_callbacks_.restore();
    demangle_.restore();
  }
  bool are_callbacks_kept() const { return set_callbacks_.is_replaced(); }

 private:
  void find() {
    is_searched_ = true;
    const char* const wanted = std::getenv("LANESCOPE_TORCH_SHORTCUTS");
    if (wanted && std::strcmp(wanted, "0") == 0) return;
    const LoadedLibrary library;
    set_callbacks_.find(library, "",
                        reinterpret_cast<std::uintptr_t>(&at::set_record_function_tls_));
    const auto demangle =
        reinterpret_cast<std::uintptr_t>(static_cast<std::string (*)(const char*)>(&c10::demangle));
#if defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
    demangle_.find(library, "_ZN3c108demangleB5cxx11EPKc", demangle);
#else
    demangle_.find(library, "_ZN3c108demangleEPKc", demangle);
#endif
  }
  bool is_searched_ = false;
  ImportedFunction set_callbacks_, demangle_;
};

}  // namespace lanescope::record_torch
