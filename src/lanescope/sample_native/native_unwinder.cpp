#include "lanescope/sample_native/native_unwinder.h"

#if LANESCOPE_HAS_UNWIND
#include <elfutils/libdwfl.h>
#endif

#include <cstdlib>
#include <cstring>

namespace lanescope::sample_native {

#if LANESCOPE_HAS_UNWIND

// libdw's own way to read a process stops it. Its callbacks let us give it registers and memory.
struct NativeUnwinder::Impl {
  pid_t pid = 0;
  Dwfl* dwfl = nullptr;
  bool is_attached = false;
  const NativeRegisters* registers = nullptr;
  std::uint64_t stack_at = 0;
  std::span<const std::byte> stack;
  NativeCallers* out = nullptr;

  static Impl& of(void* arg) { return *static_cast<Impl*>(arg); }
  static pid_t next_thread(Dwfl*, void* arg, void** thread_arg) {
    if (*thread_arg) return 0;
    *thread_arg = arg;
    return of(arg).pid;
  }
  static bool get_thread(Dwfl*, pid_t, void* arg, void** thread_arg) {
    *thread_arg = arg;
    return true;
  }
  static bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* arg) {
    const Impl& impl = of(arg);
    if (address < impl.stack_at || impl.stack.size() < sizeof *word ||
        address - impl.stack_at > impl.stack.size() - sizeof *word)
      return false;
    std::memcpy(word, impl.stack.data() + (address - impl.stack_at), sizeof *word);
    return true;
  }
  static bool set_registers(Dwfl_Thread* thread, void* arg) {
    const auto& values = of(arg).registers->values;
    for (std::size_t number = 0; number < values.size(); ++number) {
      if (!values[number]) continue;
      const Dwarf_Word value = *values[number];
      if (!dwfl_thread_state_registers(thread, static_cast<int>(number), 1, &value)) return false;
    }
    return true;
  }
  static int add_frame(Dwfl_Frame* frame, void* arg) {
    Impl& impl = of(arg);
    Dwarf_Addr pc = 0;
    bool is_activation = false;
    if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
    // Code without a file (made at run time) has no tables: what would follow is a guess.
    const bool is_known = dwfl_addrmodule(impl.dwfl, is_activation ? pc : pc - 1) != nullptr;
    if (!is_known && !impl.out->addresses.empty()) return DWARF_CB_ABORT;
    impl.out->addresses.push_back(pc);
    return is_known && impl.out->addresses.size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
  }
  // Whether the tables say that nothing called this code: they leave its return address undefined. libdw
  // ends the same way when it cannot read the address.
  bool is_outermost(std::uint64_t pc) const {
    Dwfl_Module* const module = dwfl_addrmodule(dwfl, pc);
    Dwarf_Addr bias = 0;
    Dwarf_CFI* const table = module ? dwfl_module_eh_cfi(module, &bias) : nullptr;
    Dwarf_Frame* frame = nullptr;
    if (!table || dwarf_cfi_addrframe(table, pc - bias, &frame) != 0) return false;
    Dwarf_Op memory[3];
    Dwarf_Op* rule = nullptr;
    std::size_t count = 0;
    const bool is_read =
        dwarf_frame_register(frame, NativeRegisters::kInstruction, memory, &rule, &count) == 0;
    const bool is_undefined = is_read && count == 0 && rule == memory;
    std::free(frame);
    return is_undefined;
  }
  // Debug information is not needed, and looking for it may ask servers.
  static int find_no_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) {
    return -1;
  }
  static int find_no_debug(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                           GElf_Word, char**) {
    return -1;
  }
};

bool NativeUnwinder::is_built_in() { return true; }

NativeUnwinder::NativeUnwinder(pid_t pid) : impl_(std::make_unique<Impl>()) { impl_->pid = pid; }

NativeUnwinder::~NativeUnwinder() {
  if (impl_->dwfl) dwfl_end(impl_->dwfl);
}

void NativeUnwinder::use(const NativeModules& modules) {
  static const Dwfl_Callbacks kFiles = {Impl::find_no_file, Impl::find_no_debug, nullptr, nullptr};
  static const Dwfl_Thread_Callbacks kThreads = {Impl::next_thread, Impl::get_thread,
                                                 Impl::read_memory, Impl::set_registers,
                                                 nullptr,           nullptr};
  Impl& impl = *impl_;
  if (impl.dwfl) dwfl_end(impl.dwfl);
  impl.is_attached = false;
  impl.dwfl = dwfl_begin(&kFiles);
  if (!impl.dwfl) return;
  dwfl_report_begin(impl.dwfl);
  for (const auto& module : modules.modules()) {
    sample::ElfFile file(module->open_path);
    if (!file.read_headers()) continue;
    dwfl_report_elf(impl.dwfl, module->path.c_str(), module->open_path.c_str(), -1,
                    file.bias(module->start), true);
  }
  dwfl_report_end(impl.dwfl, nullptr, nullptr);
  impl.is_attached = dwfl_attach_state(impl.dwfl, nullptr, impl.pid, &kThreads, &impl);
}

NativeCallers NativeUnwinder::walk(const NativeRegisters& registers, std::uint64_t stack_at,
                                   std::span<const std::byte> stack) {
  NativeCallers found;
  if (!registers.values[NativeRegisters::kInstruction]) return found;
  Impl& impl = *impl_;
  if (impl.is_attached) {
    impl.registers = &registers;
    impl.stack_at = stack_at;
    impl.stack = stack;
    impl.out = &found;
    const bool has_ended = dwfl_getthread_frames(impl.dwfl, impl.pid, Impl::add_frame, &impl) == 0;
    const std::size_t count = found.addresses.size();
    found.is_whole =
        has_ended && count > 0 && impl.is_outermost(found.addresses.back() - (count > 1 ? 1 : 0));
  }
  if (found.addresses.empty())
    found.addresses.push_back(*registers.values[NativeRegisters::kInstruction]);
  return found;
}

#else

struct NativeUnwinder::Impl {};
bool NativeUnwinder::is_built_in() { return false; }
NativeUnwinder::NativeUnwinder(pid_t) {}
NativeUnwinder::~NativeUnwinder() = default;
void NativeUnwinder::use(const NativeModules&) {}
NativeCallers NativeUnwinder::walk(const NativeRegisters& registers, std::uint64_t,
                                   std::span<const std::byte>) {
  NativeCallers found;
  if (registers.values[NativeRegisters::kInstruction])
    found.addresses.push_back(*registers.values[NativeRegisters::kInstruction]);
  return found;
}

#endif

}  // namespace lanescope::sample_native
