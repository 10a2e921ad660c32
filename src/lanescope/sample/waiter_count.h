// Finds where glibc keeps the number of threads that wait on a condition variable. The place differs
// between versions of glibc and between updates of one version. So this lets three threads wait on a
// condition variable and looks for the word that has their number.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <optional>

namespace lanescope::sample {

// Byte offset, in a pthread_cond_t, of the 32-bit word with that number in bits 3 and higher. Nothing:
// the process `pid` uses another libc file than this one, or the word was not found. The first call
// starts and ends three threads.
std::optional<std::size_t> find_waiter_count(pid_t pid);

}  // namespace lanescope::sample
