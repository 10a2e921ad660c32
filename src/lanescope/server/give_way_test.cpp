#include "lanescope/server/give_way.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace lanescope::server {
namespace {

int share_of_this_thread() {
  return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)));
}

TEST(GiveWay, LowersTheShareOfTheWorkAndNotThatOfTheCaller) {
  const int before = share_of_this_thread();
  int meanwhile = before;
  run_giving_way([&] { meanwhile = share_of_this_thread(); });
  EXPECT_EQ(meanwhile, std::max(5, before));
  EXPECT_EQ(share_of_this_thread(), before);
}

TEST(GiveWay, ThrowsWhatTheWorkThrows) {
  EXPECT_THROW(run_giving_way([] { throw std::bad_alloc(); }), std::bad_alloc);
}

}  // namespace
}  // namespace lanescope::server
