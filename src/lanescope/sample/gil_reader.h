// Who holds the interpreter's lock (GIL), how many threads wait for it, and whether garbage is being
// collected: read from outside of the lock, as stacks are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "lanescope/sample/process_memory.h"
#include "lanescope/sample/python_layout.h"

namespace lanescope::sample {

struct GilState {
  std::uint64_t holder = 0;  // thread state that holds the lock; 0: none does
  // Threads that wait for it, by the count in glibc's condition variable; nothing: not known where
  // this glibc has it.
  std::optional<std::uint32_t> waiting;
  bool is_collecting = false;
};

// One system call each time. Nothing: the memory cannot be read, or what it holds cannot be a lock.
// `waiter_count`: find_waiter_count().
class GilReader {
 public:
  GilReader(ProcessMemory& memory, const PythonLayout& layout, std::uint64_t runtime,
            std::uint64_t interpreter, std::optional<std::size_t> waiter_count);
  std::optional<GilState> read();

 private:
  ProcessMemory& memory_;
  std::uint64_t gil_, collecting_;  // addresses
  std::optional<std::size_t> waiter_count_;
};

}  // namespace lanescope::sample
