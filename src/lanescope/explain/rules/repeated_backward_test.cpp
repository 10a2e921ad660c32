#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Each step makes five nodes and goes over them `sweeps` times, 40 us of work a node.
Trace backward(int sweeps, bool same_nodes = true) {
  ProgramSketch program;
  int step = 0;
  program.steps(6, [&](ProgramSketch& p) {
    ++step;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    for (int sweep = 0; sweep < sweeps; ++sweep)
      for (int node = 0; node < 5; ++node) {
        const std::int64_t number = step * 1000 + node + (same_nodes ? 0 : sweep * 100);
        p.begin_op("autograd::engine::evaluate_function: MmBackward0",
                   {.sequence = number, .fwd_thread = 1});
        p.kernel("gemm", 40).end();
      }
  });
  return program.trace();
}

// Three sweeps: two of them, 5 x 40 us each, are at stake. The GPU is always busy.
TEST(RepeatedBackwardTest, CountsAllRunsButTheFirst) {
  const auto finding = find_by_rule(backward(3), "repeated-backward");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 5);  // nodes that run again
  EXPECT_EQ(finding->verdict.values[1].integer, 5);  // nodes
  EXPECT_DOUBLE_EQ(finding->verdict.values[2].real, 3);
  EXPECT_EQ(finding->at_stake_ns, us(2 * 5 * 40));
}

TEST(RepeatedBackwardTest, IsQuietAboutOneSweep) {
  EXPECT_FALSE(find_by_rule(backward(1), "repeated-backward"));
}

// A penalty on gradients: adding the losses up would not help.
TEST(RepeatedBackwardTest, KnowsABackwardPassThatIsDifferentiated) {
  ProgramSketch program;
  int step = 0;
  program.steps(6, [&](ProgramSketch& p) {
    ++step;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    for (int sweep = 0; sweep < 2; ++sweep) {
      for (int node = 0; node < 5; ++node) {
        p.begin_op("autograd::engine::evaluate_function: ReluBackward0",
                   {.sequence = step * 1000 + node, .fwd_thread = 1});
        p.kernel("relu", 40).end();
      }
      p.begin_op("autograd::engine::evaluate_function: ThresholdBackwardBackward0",
                 {.sequence = step * 1000 + 500 + sweep, .fwd_thread = 1});
      p.kernel("where", 10).end();
    }
  });
  const auto finding = find_by_rule(program.trace(), "repeated-backward");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->brief.pattern.find("create_graph"), std::string::npos);
  EXPECT_EQ(finding->action.pattern.find("Add the losses"), std::string::npos);
}

// Micro-batches make new nodes each time.
TEST(RepeatedBackwardTest, IsQuietAboutNewNodes) {
  EXPECT_FALSE(find_by_rule(backward(3, false), "repeated-backward"));
}

}  // namespace
}  // namespace lanescope::explain
