// Child processes, and waiting for what they do, for tests of whole programs.
#pragma once
#include <stdio.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

namespace lanescope::testing {

// Forks; the child runs `body` and leaves by _exit. Returns the child.
inline pid_t in_child(const std::function<int()>& body) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}

// The status of waitpid().
inline int wait_for(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// Asks every millisecond; false: not within two minutes, which a busy machine may need.
inline bool wait_until(const std::function<bool()>& what) {
  using Clock = std::chrono::steady_clock;
  for (const auto until = Clock::now() + std::chrono::seconds(120); Clock::now() < until;) {
    if (what()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace lanescope::testing
