#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

TEST(TinyKernelsTest, SpeaksOfManyShortKernels) {
  EXPECT_TRUE(find_by_rule(loop(3, 250, {.us = 2}).trace(), "tiny-kernels"));
}

TEST(TinyKernelsTest, IsQuietWhenTheGpuKeepsUp) {
  EXPECT_FALSE(find_by_rule(loop(3, 250, {.us = 9, .call_us = 2}, 0).trace(), "tiny-kernels"));
  EXPECT_FALSE(find_by_rule(loop(3, 50, {.us = 2}).trace(), "tiny-kernels"));  // few
}

}  // namespace
}  // namespace lanescope::explain
