// How much memory this process can still take.
#pragma once
#include <cstdint>
#include <optional>

namespace lanescope {

// Bytes: what the machine has available, less where a control group (a container, a job) or
// `ulimit -d` leaves less. Nothing: the system does not say. Any thread; reads a few files of /proc
// and /sys.
std::optional<std::uint64_t> free_memory_bytes();

}  // namespace lanescope
