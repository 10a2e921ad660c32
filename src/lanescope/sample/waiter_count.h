// Where glibc keeps the number of threads that wait on a condition variable. Versions of glibc
// differ, and so do updates of one version. So this waits on one and looks which word changes.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <optional>

namespace lanescope::sample {

// Byte offset in a pthread_cond_t of a 32-bit word whose bits from 3 on are that number. Nothing:
// that process uses another libc file than this one, or the word was not found. Starts and ends
// three threads the first time.
std::optional<std::size_t> find_waiter_count(pid_t pid);

}  // namespace lanescope::sample
