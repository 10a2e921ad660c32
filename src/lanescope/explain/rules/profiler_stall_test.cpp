#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_first_step_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(ProfilerStallTest, SpeaksOfActivityBufferRequests) {
  const auto finding = find_by_rule(with_first_step(400, true).trace(), "profiler-stall");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kTrust);
}

TEST(ProfilerStallTest, IsQuietWhenTheRequestHidesBehindTheGpu) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 100});
    program.overhead("Activity Buffer Request", 50).end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "profiler-stall"));
}

}  // namespace
}  // namespace lanescope::explain
