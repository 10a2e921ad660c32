#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct Backward {
  bool records_graph = true;    // create_graph=True
  bool goes_over_it = false;    // a second backward pass runs the nodes of the first
  bool copies_gradient = true;  // as AccumulateGrad does if it records a graph
};

// Five nodes, each with a product of 40 us and a gradient that is copied in 10 us.
Trace backward(const Backward& with) {
  ProgramSketch program;
  int step = 0;
  program.steps(6, [&](ProgramSketch& p) {
    ++step;
    p.kernel("gemm", 100);
    const auto number = [&](int node) {
      testing::Fields fields;
      if (with.records_graph) fields.sequence = 100'000 + step * 100 + node;
      return fields;
    };
    for (int node = 0; node < 5; ++node) {
      p.begin_op("autograd::engine::evaluate_function: AddmmBackward0",
                 {.sequence = step * 100 + node, .fwd_thread = 1});
      p.begin_op("aten::mm", number(node)).kernel("gemm", 40).end().end();
      p.begin_op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
      if (with.copies_gradient) p.begin_op("aten::copy_", number(node)).copy(10, 1'000'000).end();
      p.end();
    }
    for (int node = 0; with.goes_over_it && node < 5; ++node)
      p.begin_op("autograd::engine::evaluate_function: MmBackward0",
                 {.sequence = 100'000 + step * 100 + node, .fwd_thread = 1})
          .kernel("gemm", 40)
          .end();
  });
  return program.trace();
}

// 5 x 10 us of copies, while the GPU is always busy.
TEST(UnusedGraphTest, CountsTheCopiesOfGradients) {
  const auto finding = find_by_rule(backward({}), "unused-graph");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 5);
  EXPECT_EQ(finding->at_stake_ns, us(50));
  EXPECT_EQ(finding->waiting_ns, 0);
}

TEST(UnusedGraphTest, IsQuietAboutAGraphThatIsUsed) {
  EXPECT_FALSE(find_by_rule(backward({.goes_over_it = true}), "unused-graph"));
}

TEST(UnusedGraphTest, IsQuietAboutAUsualBackwardPass) {
  EXPECT_FALSE(find_by_rule(backward({.records_graph = false}), "unused-graph"));
}

// A checkpoint computes the forward pass again inside of the backward pass. Gradients are not copied there.
TEST(UnusedGraphTest, IsQuietAboutCheckpoints) {
  EXPECT_FALSE(find_by_rule(backward({.copies_gradient = false}), "unused-graph"));
}

}  // namespace
}  // namespace lanescope::explain
