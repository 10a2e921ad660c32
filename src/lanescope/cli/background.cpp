#include "lanescope/cli/background.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lanescope::cli {

void go_into_background() {
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
