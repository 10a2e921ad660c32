#include <gtest/gtest.h>

#include <cstdint>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kAccumulateGrad[] =
    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";

// On a CPU: 300 us of forward pass, then a node of 110 us for each parameter, of which its optimizer takes 100 us.
Trace hooks(int parameters, const char* range = "Optimizer.step#AdamW.step",
            const char* around = kAccumulateGrad) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.cpu_op("aten::linear", 300);
    for (int i = 0; i < parameters; ++i) {
      p.begin_op(around).pass(9);
      p.begin(range).pass(99).end();
      p.end();
    }
  });
  return program.trace();
}

TEST(OptimizerInBackwardTest, CountsAllOptimizersButOne) {
  const auto finding = find_by_rule(hooks(10), "optimizer-in-backward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values[0].integer, 10);
  const std::int64_t time_ns = finding->verdict.values[1].integer;
  EXPECT_GE(time_ns, 10 * us(99));
  EXPECT_EQ(finding->at_stake_ns, time_ns - time_ns / 10);
}

TEST(OptimizerInBackwardTest, IsQuietAboutOptimizersAfterIt) {
  EXPECT_FALSE(
      find_by_rule(hooks(10, "Optimizer.step#AdamW.step", "aten::mm"), "optimizer-in-backward"));
  EXPECT_FALSE(find_by_rule(hooks(10, "my hook"), "optimizer-in-backward"));
  EXPECT_FALSE(find_by_rule(hooks(3), "optimizer-in-backward"));
}

// With a GPU what counts is its waiting: 2 launches of 10 us of the CPU for each of 10 parameters, after a wait.
TEST(OptimizerInBackwardTest, CountsWhatTheGpuWaits) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.launch({.us = 100}).wait();
    for (int i = 0; i < 10; ++i) {
      p.begin_op(kAccumulateGrad).begin("Optimizer.step#AdamW.step");
      p.launch({.us = 1, .op = "aten::_foreach_mul_"})
          .launch({.us = 1, .op = "aten::_foreach_add_"});
      p.end().end();
    }
  });
  const auto finding = find_by_rule(program.trace(), "optimizer-in-backward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[1].integer, 2);  // kernels of each
  const std::int64_t idle_ns = finding->verdict.values[2].integer;
  EXPECT_GT(idle_ns, us(100));
  EXPECT_EQ(finding->waiting_ns, idle_ns - idle_ns / 10);
}

}  // namespace
}  // namespace lanescope::explain
