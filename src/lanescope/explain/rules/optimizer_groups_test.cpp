#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// A product of 100 us, on which the program waits; then two calls for each group, 10 us of the CPU and 1 us of the GPU.
Trace groups(int groups, const char* range = "Optimizer.step#AdamW.step") {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().launch({.us = 100}).wait().begin(range);
    for (int i = 0; i < groups; ++i)
      program.launch({.us = 1, .op = "aten::_foreach_mul_"})
          .launch({.us = 1, .op = "aten::_foreach_addcdiv_"});
    program.end().end();
  }
  return program.trace();
}

TEST(OptimizerGroupsTest, CountsAllGroupsButOne) {
  const auto finding = find_by_rule(groups(10), "optimizer-groups");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 10);
  EXPECT_EQ(finding->verdict.values[1].integer, 20);  // calls of a step
  const std::int64_t idle_ns = finding->verdict.values[2].integer;
  EXPECT_EQ(finding->at_stake_ns, idle_ns - idle_ns / 10);
}

TEST(OptimizerGroupsTest, IsQuietAboutFewGroupsAndOtherLoops) {
  EXPECT_FALSE(find_by_rule(groups(7), "optimizer-groups"));
  EXPECT_FALSE(find_by_rule(groups(10, "update"), "optimizer-groups"));
}

}  // namespace
}  // namespace lanescope::explain
