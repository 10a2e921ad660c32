// Ends with an error before a control group (a container, a job) would kill the process.
//
// Problem: SpillMemory puts large blocks on disk, but a million small ones exceed a small limit, too, and then the system kills
// the process without a message. Idea: each thread counts what it takes, and from time to time checks how much memory the
// process uses. If what is left suffices only for the pages of files, the block is refused.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lanescope/base/free_memory.h"

namespace lanescope {

// Any thread.
class MemoryWatch {
 public:
  // Left free for pages of the program and of the files that it reads and writes, but never more than half of what is free at
  // the start. With less, the system kills the process, or reads the same pages over and over.
  static constexpr std::uint64_t kForFiles = 6u << 20;
  // With less free at the start, no trace that needs a block of 1 MiB is opened.
  static constexpr std::uint64_t kLeastFree = 28u << 20;

  // `proc` has `status` of this process.
  explicit MemoryWatch(const GroupMemory& group, const std::string& proc = "/proc/self");
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
  ~MemoryWatch();

  // Both throw SpillFailed: expect_least() if less than kLeastFree was free at the start, expect_room() if too little is free now.
  void expect_least() const;
  void expect_room() const;
  // For work that uses `bytes` at once. Throws SpillFailed if less was free at the start: the system would then read the same
  // pages from the disk again and again. Does nothing if the user has set LANESCOPE_MEMORY.
  void expect_in_use(std::uint64_t bytes) const;
  // True: pages of blocks on disk are best read one by one. A disk that reads 8 MiB ahead of each missing page fills so little
  // memory with pages of one column, and those of the others leave (docs/measurements/index_file.md).
  bool is_little() const;
  // expect_least(), then the thread of paging_watch.h. Once, when the first large block is taken.
  void begin() const;
  // How many bytes a thread may take between two checks.
  std::uint64_t step_bytes() const { return step_bytes_; }

  // Starts watching this process if a group has a limit. Before there are threads.
  static void start();
  // nullptr: there is no limit. One load.
  static const MemoryWatch* of_process() noexcept { return made_.load(std::memory_order_relaxed); }

 private:
  std::uint64_t own_bytes() const;  // in memory or swapped; 0: the system does not say

  static std::atomic<const MemoryWatch*> made_;
  const GroupMemory group_;
  const std::uint64_t most_bytes_, step_bytes_;
  const int status_;
  const std::uint64_t own_at_start_;
};

// The same for this process; nothing without a limit.
void expect_in_use(std::uint64_t bytes);

}  // namespace lanescope
