#include "lanescope/explain/rules/penalty_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kRunsNode[] = "autograd::engine::evaluate_function: ";

void run_nodes(ProgramSketch& p, const std::string& name, std::int64_t newest, int nodes,
               std::int64_t thread, int kernel_us) {
  for (int node = 0; node < nodes; ++node)
    p.begin_op(kRunsNode + name, {.sequence = newest - node, .fwd_thread = thread})
        .kernel("gemm", kernel_us)
        .end();
}

void add_to_parameter(ProgramSketch& p) {
  p.begin_op(kRunsNode + std::string("torch::autograd::AccumulateGrad"));
  p.begin_op("torch::autograd::AccumulateGrad").pass(1).end().end();
}

struct Penalty {
  bool has_other_network = true;     // which trains without second derivatives
  bool has_use_of_output = false;    // the loss goes back over the first node, too
  bool is_first_derivative = false;  // torch.autograd.grad() without create_graph
};

// One network's gradient by its input, five nodes of 40 us, is differentiated: five nodes of 10 us, and four or five of the first
// ones again. Its optimizer steps; then the other network trains.
std::optional<Finding> penalty(const Penalty& how) {
  ProgramSketch program;
  std::int64_t first = 0;
  program.steps(6, [&](ProgramSketch& p) {
    first += 1000;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    p.begin_op("aten::ones_like").pass(1).end();
    for (int node = 4; node >= 0; --node)
      p.begin_op(kRunsNode + std::string("MmBackward0"),
                 {.sequence = first + node, .fwd_thread = 1})
          .begin_op("MmBackward0", {.sequence = first + node})
          .begin_op("aten::mm", {.sequence = how.is_first_derivative ? -1 : first + 500 - node})
          .kernel("gemm", 40)
          .end()
          .end()
          .end();
    p.begin_op(kRunsNode + std::string("torch::autograd::AccumulateGrad")).end();
    p.begin_op("aten::ones_like").pass(1).end();
    if (!how.is_first_derivative) run_nodes(p, "MmBackwardBackward0", first + 500, 5, 2, 10);
    const int again = how.has_use_of_output ? 5 : 4;
    run_nodes(p, "MmBackward0", first + again - 1, again, 1, 40);
    add_to_parameter(p);
    p.begin("Optimizer.step#Adam.step").pass(5).end();
    if (!how.has_other_network) return;
    p.begin_op("aten::mm").kernel("gemm", 100).end();
    run_nodes(p, "MmBackward0", first + 904, 5, 1, 40);
    add_to_parameter(p);
    p.begin("Optimizer.step#Adam.step").pass(5).end();
  });
  return find_by_rule(program.trace(), "repeated-backward");
}

// 5 x 40 us are differentiated, 5 x 10 us are their second derivatives, 4 x 40 us run again for these.
TEST(PenaltyPassesTest, CountsAllThatRunsForAPenalty) {
  const auto found = penalty({});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at_stake_ns, us(5 * 40 + 5 * 10 + 4 * 40));
  EXPECT_TRUE(found->gain_is_bound);
  EXPECT_THAT(found->action.pattern, ::testing::HasSubstr("every 16th step"));
}

// Then one run of each node stays.
TEST(PenaltyPassesTest, KeepsAPassThatTheLossMayNeed) {
  const auto found = penalty({.has_use_of_output = true});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at_stake_ns, us(5 * 10 + 5 * 40));
}

// Of one network, the second derivatives may be the loss itself, as in a field of forces.
TEST(PenaltyPassesTest, IsQuietWhereEachOptimizerStepNeedsThem) {
  const auto found = penalty({.has_other_network = false});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at_stake_ns, us(4 * 40));
  EXPECT_THAT(found->action.pattern, ::testing::Not(::testing::HasSubstr("16")));
}

TEST(PenaltyPassesTest, IsQuietWithoutSecondDerivatives) {
  const auto found = penalty({.is_first_derivative = true});
  ASSERT_TRUE(found);
  EXPECT_THAT(found->action.pattern, ::testing::Not(::testing::HasSubstr("16")));
}

}  // namespace
}  // namespace lanescope::explain
