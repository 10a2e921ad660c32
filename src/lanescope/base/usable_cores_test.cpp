#include "lanescope/base/usable_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace lanescope {
namespace {

TEST(UsableCoresTest, AThreadOfOneCoreHasOne) {
  EXPECT_GE(usable_cores(), 1u);
  std::thread([] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cores(), 1u);
  }).join();
}

}  // namespace
}  // namespace lanescope
