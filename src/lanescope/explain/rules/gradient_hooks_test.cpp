#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kAccumulateNode[] =
    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";

struct DrawnHooks {
  const char* frame = "train.py(5): scale_down";
  int count = 10;                  // parameters
  bool is_in_node_itself = false;  // as the backward() of a function of the program
};

// Steps whose backward pass has 10 nodes: a hook of 40 us with one kernel of 2 us, then the node itself.
Trace draw_hooks(const DrawnHooks& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.kernel("gemm", 50).wait();
    for (int i = 0; i < drawn.count; ++i) {
      p.begin_op(kAccumulateNode);
      if (drawn.is_in_node_itself) p.begin_op("torch::autograd::AccumulateGrad");
      const std::int64_t from = p.cpu_us();
      p.op("aten::div", {}, "div", 2).pass(36);
      p.sketch().slice("python_function", drawn.frame, ProgramSketch::at(from),
                       us(p.cpu_us() - from));
      if (!drawn.is_in_node_itself) p.begin_op("torch::autograd::AccumulateGrad");
      p.pass(1).end().end();
    }
    p.pass(5);
  });
  return program.trace();
}

// A hook's operator takes 1 + 1 + 1 us, and 36 us pass: the GPU works 2 us of these 39 or is idle.
TEST(GradientHooksTest, CountsTheirWorkAndTheWaitForThem) {
  const auto finding = find_by_rule(draw_hooks({}), "gradient-hooks");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).text, "train.py:5 scale_down");
  EXPECT_EQ(finding->brief.values.at(1).integer, 10);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 10);  // launches
  EXPECT_EQ(finding->at_stake_ns, us(390));
}

TEST(GradientHooksTest, IsQuietAboutWhatIsNoHookOfTheProgram) {
  const auto is_reported = [](const DrawnHooks& drawn) {
    return find_by_rule(draw_hooks(drawn), "gradient-hooks").has_value();
  };
  EXPECT_FALSE(
      is_reported({.frame = "torch/distributed/fsdp/_runtime_utils.py(700): _post_backward"}));
  EXPECT_FALSE(is_reported({.is_in_node_itself = true}));
  EXPECT_FALSE(is_reported({.count = 4}));  // few hooks
}

}  // namespace
}  // namespace lanescope::explain
