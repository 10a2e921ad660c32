#include "lanescope/sample/descendants.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace lanescope::sample {
namespace {

// A child that starts a child, and both wait until this process closes its end of a pipe.
TEST(DescendantsTest, AreChildrenAndTheirChildren) {
  int ready[2], end[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(end), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(end[1]);
    const pid_t grandchild = fork();
    char byte = 0;
    if (grandchild != 0 && write(ready[1], &grandchild, sizeof grandchild) < 0) _exit(1);
    if (read(end[0], &byte, 1) < 0) _exit(1);
    if (grandchild != 0) waitpid(grandchild, nullptr, 0);
    _exit(0);
  }
  ASSERT_GT(child, 0);
  pid_t grandchild = 0;
  ASSERT_EQ(read(ready[0], &grandchild, sizeof grandchild), ssize_t{sizeof grandchild});
  std::vector<pid_t> found = find_descendants(getpid(), 10);
  const std::vector<pid_t> cut = find_descendants(getpid(), 1);
  close(end[1]);
  waitpid(child, nullptr, 0);
  if (access("/proc/self/task/self/children", F_OK) != 0 && found.empty())
    GTEST_SKIP() << "this kernel does not list children";
  std::sort(found.begin(), found.end());
  std::vector<pid_t> expected{child, grandchild};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(found, expected);
  EXPECT_EQ(cut, std::vector<pid_t>{child});
  EXPECT_TRUE(find_descendants(getpid(), 10).empty());
  for (const int file : {ready[0], ready[1], end[0]}) close(file);
}

TEST(DescendantsTest, NoSuchProcessHasNone) {
  EXPECT_TRUE(find_descendants(0x7ffffff0, 10).empty());
}

}  // namespace
}  // namespace lanescope::sample
