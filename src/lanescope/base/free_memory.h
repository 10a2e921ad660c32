// How much memory this process can still take.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace lanescope {

// Bytes: what the machine has available, or what a control group (a container, a job) or `ulimit -d` leaves, if that is less.
// Nothing: the system does not say. Any thread; reads a few files of /proc and /sys.
std::optional<std::uint64_t> free_memory_bytes();

// The control group that leaves this process the least memory: its own, or one around it. Both versions.
struct GroupMemory {
  std::uint64_t limit_bytes = 0;
  std::uint64_t free_bytes =
      0;  // pages of files that the group holds count as free: they can be read again
  std::uint64_t unused_bytes = 0;  // without pages of files
  std::uint64_t swap_bytes = 0;    // what may leave the memory for a swap file
};

// Nothing: no group has a limit. `root` is the folder that has /proc and /sys; tests have one of their own.
std::optional<GroupMemory> group_memory(const std::string& root = "");

}  // namespace lanescope
