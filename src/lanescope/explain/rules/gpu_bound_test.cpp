#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using Work = testing::ProgramSketch::Work;

TEST(GpuBoundTest, SpeaksWhenTheQueueIsFull) {
  EXPECT_TRUE(find_by_rule(loop(4, 10, {.us = 50}).trace(), "gpu-bound"));
}

TEST(GpuBoundTest, IsQuietWhenCopiesFillTheGpu) {
  const Work copy{.name = "Memcpy DtoD", .us = 50, .category = "gpu_memcpy"};
  EXPECT_FALSE(find_by_rule(loop(4, 10, copy).trace(), "gpu-bound"));
}

}  // namespace
}  // namespace lanescope::explain
