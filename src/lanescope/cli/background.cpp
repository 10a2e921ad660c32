#include "lanescope/cli/background.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace lanescope::cli {

namespace {

// What the recorded program got from its parent without O_CLOEXEC: locks, pipes whose reader waits
// for their end, listening sockets. They must end with the program.
void close_inherited_descriptors() {
  constexpr unsigned kFirst = 3, kLast = ~0u;
#ifdef SYS_close_range
  if (syscall(SYS_close_range, kFirst, kLast, 0u) == 0) return;
#endif
  rlimit limit{};
  constexpr rlim_t kMost = 65'536;  // a limit may be much higher than what is open
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  for (rlim_t fd = kFirst; fd < std::min(limit.rlim_cur, kMost); ++fd) close(static_cast<int>(fd));
}

}  // namespace

void go_into_background() {
  close_inherited_descriptors();
  setpriority(PRIO_PROCESS, 0, 19);
  // ioprio_set(2) has no wrapper: class 2 (best effort), level 7 (the last).
  constexpr int kWhoProcess = 1, kBestEffort = 2, kLast = 7;
  syscall(SYS_ioprio_set, kWhoProcess, 0, kBestEffort << 13 | kLast);
  // Private writable memory, without the code and the file that is read.
  const rlimit limit{kBackgroundMemoryBytes, kBackgroundMemoryBytes};
  setrlimit(RLIMIT_DATA, &limit);
  if (const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); file >= 0) {
    static_cast<void>(!write(file, "1000", 4));
    close(file);
  }
  signal(SIGPIPE, SIG_IGN);
}

}  // namespace lanescope::cli
