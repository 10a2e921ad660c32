// Walks the native callers of a stopped or copied stack, with the unwind tables (.eh_frame) of the
// process's files. Nothing is run or stopped in that process. Needs libdw; without it a stack has its
// innermost frame only.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lanescope/sample_native/native_modules.h"

namespace lanescope::sample_native {

// By DWARF number of x86-64: 0 rax, 3 rbx, 6 rbp, 7 rsp, 12 to 15 r12 to r15, 16 rip. Absent: not known.
struct NativeRegisters {
  static constexpr std::size_t kCount = 17, kStack = 7, kInstruction = 16;
  std::array<std::optional<std::uint64_t>, kCount> values;
};

struct NativeCallers {
  std::vector<std::uint64_t> addresses;  // innermost first: the instruction, then return addresses
  bool is_whole = false;                 // it reaches the thread's first function
};

// One thread uses it.
class NativeUnwinder {
 public:
  static constexpr std::size_t kMostFrames = 256;
  static bool is_built_in();  // with libdw

  explicit NativeUnwinder(pid_t pid);
  ~NativeUnwinder();
  NativeUnwinder(const NativeUnwinder&) = delete;
  NativeUnwinder& operator=(const NativeUnwinder&) = delete;

  // Call when the modules have changed.
  void use(const NativeModules& modules);
  // `stack`: a copy of the memory from `stack_at` on. Reads nothing else of the process.
  NativeCallers walk(const NativeRegisters& registers, std::uint64_t stack_at,
                     std::span<const std::byte> stack);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lanescope::sample_native
