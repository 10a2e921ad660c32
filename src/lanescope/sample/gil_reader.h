// Who holds the interpreter's lock (GIL), how many threads wait for it, and whether garbage is being
// collected. The reader does not take the lock.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "lanescope/sample/process_memory.h"
#include "lanescope/sample/python_layout.h"

namespace lanescope::sample {

struct GilState {
  std::uint64_t holder = 0;  // thread state that holds the lock; 0: none does
  // How many threads wait for the lock, from the count in glibc's condition variable. Nothing: the place
  // of the count in this glibc is not known.
  std::optional<std::uint32_t> waiting;
  bool is_collecting = false;
};

// `waiter_count`: find_waiter_count().
class GilReader {
 public:
  GilReader(const GilReader&) = delete;  // pieces_ points into this object
  GilReader& operator=(const GilReader&) = delete;
  GilReader(ProcessMemory& memory, const PythonLayout& layout, std::uint64_t runtime,
            std::uint64_t interpreter, std::optional<std::size_t> waiter_count);

  // One system call. Nothing: the memory cannot be read, or what it holds cannot be a lock.
  std::optional<GilState> read();
  // read() in two parts: the memory that the caller reads, then the state from what it read.
  std::span<MemoryPiece> pieces() { return pieces_; }
  std::optional<GilState> state() const;

 private:
  // _gil_runtime_state from `last_holder` on. It is the same from 3.9 to 3.15 on 64-bit Linux.
  struct Gil {
    std::uint64_t last_holder;
    std::int32_t locked;  // -1: not made yet
    std::int32_t padding;
    std::uint64_t switches;
    unsigned char condition[48];  // glibc's pthread_cond_t on which threads wait
  };

  ProcessMemory& memory_;
  std::optional<std::size_t> waiter_count_;
  Gil gil_{};
  std::int32_t collecting_ = 0;
  std::array<MemoryPiece, 2> pieces_;
};

}  // namespace lanescope::sample
