// Child processes, for tests of whole programs.
#pragma once
#include <stdio.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

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

}  // namespace lanescope::testing
