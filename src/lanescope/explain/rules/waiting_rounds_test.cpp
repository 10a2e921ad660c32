#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::grid;
using testing::ProgramSketch;

struct DrawnRounds {
  int rounds = 20, kernels = 4;  // of a step, of a round
  std::int64_t kernel_us = 2, blocks = 4;
  std::string_view op = "aten::sub", wait = "aten::item", name = "elementwise";
  bool has_backward = false, has_grid = true;
  std::int64_t read_bytes = 8;
};

// A step with 20 rounds of four small kernels and a wait. The CPU takes 10 us for each launch.
std::optional<Finding> find_rounds(const DrawnRounds& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int round = 0; round < drawn.rounds; ++round) {
      for (int i = 0; i < drawn.kernels; ++i) {
        p.begin_op(drawn.op).pass(4);
        if (drawn.has_grid)
          p.kernel(drawn.name, drawn.kernel_us, grid(drawn.blocks, 128));
        else
          p.kernel(drawn.name, drawn.kernel_us, {});
        p.pass(4).end();
      }
      if (drawn.has_backward && round % 4 == 0)
        p.cpu_op("autograd::engine::evaluate_function: SubBackward0", 2);
      p.begin_op(drawn.wait).copy(1, drawn.read_bytes, "Memcpy DtoH (Device -> Pageable)");
      p.wait("aten::_local_scalar_dense").end().pass(5);
    }
  });
  return find_by_rule(program.trace(), "waiting-rounds");
}

TEST(WaitingRoundsTest, FindsALoopOfTinyKernelsThatWaits) {
  const auto finding = find_rounds({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_TRUE(finding->gain_is_bound);
  ASSERT_GE(finding->brief.values.size(), 2u);
  EXPECT_EQ(finding->brief.values[0].integer, 4);   // kernels for each wait
  EXPECT_EQ(finding->brief.values[1].integer, 20);  // waits of a step
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("on the CPU"));
  // A round is four operators of 11 us, a wait and 5 us of Python; its kernels take 8 us.
  EXPECT_GT(finding->at_stake_ns, us(20 * 40));
  EXPECT_LT(finding->at_stake_ns, us(20 * 70));
  EXPECT_TRUE(find_rounds({.wait = "aten::nonzero"}));
}

// Rows of 20 rounds: a list is read, and each round compares one of its elements, branches and changes it.
std::optional<Finding> find_branches(int kernels, std::int64_t blocks = 1,
                                     std::string_view wait = "aten::is_nonzero") {
  ProgramSketch program;
  const auto launch = [&](ProgramSketch& p, std::string_view op) {
    p.begin_op(op).pass(4).kernel("elementwise", 1, grid(blocks, 128)).pass(4).end();
  };
  const auto read = [](ProgramSketch& p, std::string_view op) {
    p.begin_op(op).copy(1, 8, "Memcpy DtoH (Device -> Pageable)");
    p.wait("aten::_local_scalar_dense").end().pass(5);
  };
  program.steps(4, [&](ProgramSketch& p) {
    for (int row = 0; row < 2; ++row) {
      read(p, "aten::to");
      for (int round = 0; round < 20; ++round) {
        launch(p, "aten::lt");
        read(p, wait);
        for (int i = 1; i < kernels; ++i) launch(p, round % 3 == 0 ? "aten::mul_" : "aten::div_");
      }
    }
  });
  return find_by_rule(program.trace(), "waiting-rounds");
}

TEST(WaitingRoundsTest, ComputesBranchesOfAllElementsAtOnce) {
  const auto finding = find_branches(2);
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("gather, where, scatter"));
  EXPECT_TRUE(finding->gain_is_bound);
}

TEST(WaitingRoundsTest, LeavesLongerRoundsAndOtherWaitsOnTheCpu) {
  EXPECT_FALSE(find_branches(1));  // only compares and reads
  for (const auto& finding :
       {find_branches(4), find_branches(2, 32), find_branches(3, 1, "aten::item")}) {
    ASSERT_TRUE(finding);
    EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("on the CPU"));
  }
}

TEST(WaitingRoundsTest, SaysThatItDoesNotKnowTheSizes) {
  const auto finding = find_rounds({.has_grid = false});
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, ::testing::StartsWith("If its tensors are small"));
}

TEST(WaitingRoundsTest, LeavesModelsOnTheGpu) {
  EXPECT_FALSE(find_rounds({.op = "aten::linear"}));     // decoding: weights may be large
  EXPECT_FALSE(find_rounds({.op = "aten::embedding"}));  // a table may be large
  EXPECT_FALSE(find_rounds({.op = "aten::convolution"}));
  EXPECT_FALSE(find_rounds({.op = "aten::my_op", .name = "nvjet_hsh_64x8_64x16_4x1_v_bz_TNT"}));
  EXPECT_FALSE(find_rounds({.op = "mylib::step"}));  // may have no code for the CPU
}

TEST(WaitingRoundsTest, IsQuietAboutOtherWaits) {
  EXPECT_FALSE(find_rounds({.kernel_us = 12}));             // the GPU has work
  EXPECT_FALSE(find_rounds({.blocks = 512}));               // 65,536 threads: large tensors
  EXPECT_TRUE(find_rounds({.blocks = 32}));                 // 4,096 threads
  EXPECT_FALSE(find_rounds({.blocks = 33}));                // a CPU core takes longer than a launch
  EXPECT_FALSE(find_rounds({.kernels = 1}));                // reads values
  EXPECT_FALSE(find_rounds({.rounds = 2, .kernels = 30}));  // few waits
  EXPECT_FALSE(find_rounds({.rounds = 3, .kernels = 70}));  // long rounds
  EXPECT_FALSE(find_rounds({.has_backward = true}));        // training
  EXPECT_FALSE(find_rounds({.read_bytes = 1'000'000}));     // results, not values
}

}  // namespace
}  // namespace lanescope::explain
