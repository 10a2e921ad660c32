#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using testing::Sketch;

ProgramSketch with_optimizer(std::int64_t optimizer_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 300}).begin("Optimizer.step#AdamW.step");
    program.launch({.us = optimizer_us, .op = "aten::_fused_adamw_"}).end().end();
  }
  return program;
}

TEST(OptimizerShareTest, SpeaksFromFifteenPercentOfTheBusyTime) {
  const auto finding = find_by_rule(with_optimizer(100).trace(), "optimizer-share");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_EQ(finding->at_stake_ns, us(100));
  EXPECT_NEAR(finding->verdict.values[0].real, 0.25, 1e-9);
  EXPECT_FALSE(find_by_rule(with_optimizer(45).trace(), "optimizer-share"));
}

TEST(OptimizerShareTest, NeedsTheOptimizersRangeInATrainingTrace) {
  Sketch sketch;
  sketch.op("autograd::engine::evaluate_function: MmBackward0", us(0), us(20), {.tid = 200});
  sketch.runtime("cudaLaunchKernel", us(5), us(5), {.tid = 200, .correlation = 1});
  sketch.kernel("gemm", us(12), us(100), {.correlation = 1});
  EXPECT_EQ(state_of_rule(sketch.trace(), "optimizer-share"), RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
