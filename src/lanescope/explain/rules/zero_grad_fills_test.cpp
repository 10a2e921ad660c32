#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Ten fills and ten additions of 5 us; the queue is full, so nobody waits for the CPU.
ProgramSketch zero_grad(bool fills) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 500}).begin("Optimizer.zero_grad#SGD.zero_grad");
    for (int k = 0; k < 10 && fills; ++k)
      program.launch({.name = "fill", .us = 5, .op = "aten::zero_"});
    program.end();
    for (int k = 0; k < 10; ++k)
      program.begin("torch::autograd::AccumulateGrad")
          .pass(1)
          .launch({.name = kElementwise, .us = 5, .op = "aten::add_"})
          .end();
    program.end();
  }
  return program;
}

TEST(ZeroGradFillsTest, CountsTheFillsAndTheAdditionsOntoZeros) {
  const auto finding = find_by_rule(zero_grad(true).trace(), "zero-grad-fills");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 10);
  EXPECT_EQ(finding->verdict.values[2].integer, 10);
  EXPECT_EQ(finding->at_stake_ns, us(100));
}

TEST(ZeroGradFillsTest, IsQuietWhenGradientsAreSetToNone) {
  EXPECT_FALSE(find_by_rule(zero_grad(false).trace(), "zero-grad-fills"));
}

}  // namespace
}  // namespace lanescope::explain
