// Rules on traces of several devices: they are about the one that was busy longest.
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

// 40 kernels of 50 us on device 0, 80 of 1 us on device 1; the calls of one device are recorded.
Trace two_devices(std::int64_t with_launches) {
  Sketch sketch;
  std::int64_t id = 0;
  const auto piece = [&](std::int64_t device, std::int64_t at_us, std::int64_t us) {
    ++id;
    if (device == with_launches)
      sketch.runtime("cudaLaunchKernel", (at_us - 9) * 1000, 2000, {.correlation = id});
    sketch.kernel("gemm", at_us * 1000, us * 1000, {.device = device, .correlation = id});
  };
  for (std::int64_t i = 1; i <= 40; ++i) {
    piece(0, i * 100, 50);
    piece(1, i * 100 + 20, 1);
    piece(1, i * 100 + 40, 1);
  }
  return sketch.trace();
}

// Two thirds of all work have a launch, none of device 0's.
TEST(MainDeviceTest, LaunchesOfAnotherDeviceDoNotCount) {
  EXPECT_EQ(state_of_rule(two_devices(1), "host-bound"), RuleRun::State::kNotChecked);
}

TEST(MainDeviceTest, LaunchesThatAnotherDeviceLacksAreNotMissed) {
  EXPECT_NE(state_of_rule(two_devices(0), "host-bound"), RuleRun::State::kNotChecked);
}

// A device whose calls were not recorded at all has not lost some of them.
TEST(MainDeviceTest, ADeviceWithoutLaunchesHasLostNone) {
  EXPECT_EQ(state_of_rule(two_devices(0), "lost-events"), RuleRun::State::kQuiet);
}

}  // namespace
}  // namespace lanescope::explain
