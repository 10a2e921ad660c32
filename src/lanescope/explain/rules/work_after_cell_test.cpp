#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnCells {
  int rounds = 10;
  std::vector<const char*> after = {"aten::linear", "aten::softplus", "aten::lgamma", "aten::mul",
                                    "aten::mean"};
  const char* next = "aten::cat";  // makes the next round's input
  bool trains = true;
  bool is_one_call = false;  // after the loop
};

// 20 us of the CPU for 2 us of work.
void draw_call(ProgramSketch& p, const char* op, int number) {
  p.begin_op(op, {.sequence = number}).pass(20).launch({.us = 2, .op = "aten::empty"}).end();
}

std::optional<Finding> find_after_cell(const DrawnCells& drawn) {
  int number = 0;
  return find_in_steps("work-after-cell", [&](ProgramSketch& p) {
    const int first = number;
    for (int round = 0; round < drawn.rounds; ++round) {
      draw_call(p, drawn.next, number++);
      draw_call(p, "aten::lstm_cell", number++);
      draw_call(p, "aten::lstm_cell", number++);
      if (drawn.is_one_call && round + 1 < drawn.rounds) continue;
      for (const char* op : drawn.after) draw_call(p, op, number++);
    }
    for (int i = number - 1; drawn.trains && i >= first; --i)
      p.begin_op((number - 1 - i) % 8 == 0
                     ? "autograd::engine::evaluate_function: MeanBackward0"
                     : "autograd::engine::evaluate_function: ThnnFusedLstmCellBackward0",
                 {.sequence = i, .fwd_thread = 1})
          .kernel("k", 2)
          .end();
  });
}

TEST(WorkAfterCellTest, WhatTheLossNeedsMayRunAfterTheLoop) {
  const auto finding = find_after_cell({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).integer, 10);
  EXPECT_EQ(finding->brief.values.at(1).integer, 5);
  EXPECT_EQ(finding->brief.values.at(2).text, "aten::lstm_cell");
  EXPECT_EQ(finding->brief.values.at(4).text, "aten::mean");
  EXPECT_TRUE(finding->action.pattern.starts_with("If only the loss needs them"));
  // Five of eight calls of a round, in nine of ten rounds, and some of the backward pass.
  EXPECT_GT(finding->at_stake_ratio, 0.3);
  EXPECT_LT(finding->at_stake_ratio, 0.65);
}

TEST(WorkAfterCellTest, IsQuietWhereTheNextRoundMayNeedIt) {
  EXPECT_FALSE(find_after_cell(
      {.after = {"aten::linear", "aten::log_softmax", "aten::argmax", "aten::mul", "aten::mean"}}));
  EXPECT_FALSE(find_after_cell(
      {.after = {"aten::linear", "aten::bmm", "aten::softmax", "aten::bmm", "aten::sum"}}));
  EXPECT_FALSE(find_after_cell({.next = "aten::multinomial"}));
}

TEST(WorkAfterCellTest, IsQuietWithoutALossInTheRounds) {
  EXPECT_FALSE(find_after_cell(
      {.after = {"aten::linear", "aten::softplus", "aten::lgamma", "aten::mul", "aten::add"}}));
  EXPECT_FALSE(find_after_cell({.trains = false}));
  EXPECT_FALSE(find_after_cell({.is_one_call = true}));
  EXPECT_FALSE(find_after_cell({.rounds = 3}));
}

}  // namespace
}  // namespace lanescope::explain
