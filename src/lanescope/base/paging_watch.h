// Ends the process with an error when it only reads the same pages of files again and again.
//
// Problem: blocks beyond a small limit lie on disk (SpillMemory). If the pages in use do not fit into the memory that is left, each
// page comes from the disk and pushes out one that is needed next: the work neither ends nor gets killed. Idea: look once a second
// at how much came from the disk, and how long the process computed.
#pragma once
#include <cstdint>
#include <optional>

#include "lanescope/base/free_memory.h"

namespace lanescope {

// What a process had done at one moment, since it began.
struct PagingSample {
  std::int64_t time_ns = 0;
  std::int64_t user_ns = 0;        // all threads computed, without time in the system
  std::uint64_t disk_bytes = 0;    // came from disks
  std::uint64_t asked_bytes = 0;   // returned by read(), from memory or from disks
  std::uint64_t mapped_bytes = 0;  // of files, in its addresses at this moment
};

// Decides from samples. A slow disk alone does not count: each page is then read once, and the program computes with it.
class PagingJudge {
 public:
  static constexpr std::int64_t kLeastTime_ns = 8'000'000'000;
  static constexpr std::uint64_t kLeastTimes = 3;  // each mapped page, on average
  // Less counts as no progress. A simple loop over all bytes takes at least ten times as long. Measured: 133,000 where an answer came after
  // 38 s, 8,000 and 0 where none came.
  static constexpr std::int64_t kUser_ns_per_MiB = 10'000;

  // True: for kLeastTime_ns, page faults have read at least kLeastTimes as many bytes from the disk as were ever mapped (reads by
  // read() do not count), and the threads have computed for less than kUser_ns_per_MiB of them.
  bool is_stuck(const PagingSample& now);

 private:
  std::optional<PagingSample> since_;
  std::uint64_t most_mapped_bytes_ = 0;
};

// Starts a thread that looks once a second while the process lives. When is_stuck() and the group has no memory left that was not
// in use yet, it writes one line to stderr and ends the process with exit code 1. Nothing happens when the system does not say what
// came from disks. `at_start`: its group, before the work.
void start_paging_watch(const GroupMemory& at_start);

}  // namespace lanescope
