#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// What the rounds of a step are: by default 16 networks from 24 over 200 to 18 numbers.
struct Rounds {
  int count = 16, taken = 24, made = 18;
  bool has_modules = false, is_one_model = false, looks_up = false;
  std::string_view last = "aten::mse_loss";
  bool has_backward = false;  // in each round
};

// 20 us of the CPU for 2 us of work.
void linear(ProgramSketch& p, int rows, int from, int to) {
  const std::string in = std::to_string(from), out = std::to_string(to);
  p.begin_op("aten::linear", shapes("[[" + std::to_string(rows) + ", " + in + "], [" + out + ", " +
                                        in + "], [" + out + "]]",
                                    R"(["float", "float", "float"])"));
  p.pass(20).launch({.us = 2}).end();
}

void elementwise(ProgramSketch& p, std::string_view op, int rows, int width) {
  p.begin_op(op, shapes("[[" + std::to_string(rows) + ", " + std::to_string(width) + "]]",
                        R"(["float"])"));
  p.pass(20).launch({.us = 2}).end();
}

void draw_round(ProgramSketch& p, const Rounds& rounds, int round) {
  const std::int64_t start = p.cpu_us();
  if (rounds.looks_up)
    p.begin_op("aten::embedding", shapes("[[1000, 24], [256]]", R"(["float", "long int"])"))
        .pass(20)
        .launch({.us = 2})
        .end();
  if (rounds.looks_up) elementwise(p, "aten::layer_norm", 256, rounds.taken);
  linear(p, 256, rounds.taken, 200);
  elementwise(p, "aten::silu", 256, 200);
  if (rounds.looks_up) linear(p, 256, 200, rounds.taken);  // back to the width of the table
  linear(p, 256, rounds.looks_up ? rounds.taken : 200, rounds.made);
  elementwise(p, rounds.last, 256, rounds.made);
  if (rounds.has_backward)
    p.begin_op("autograd::engine::evaluate_function: MseLossBackward0").launch({.us = 2}).end();
  if (rounds.has_modules)
    p.sketch().slice("python_function",
                     "nn.Module: Net_" + std::to_string(rounds.is_one_model ? 0 : round), us(start),
                     us(p.cpu_us() - start));
}

std::optional<Finding> find_rounds(const Rounds& rounds) {
  return find_in_steps("equal-rounds", [&](ProgramSketch& p) {
    for (int i = 0; i < rounds.count; ++i) draw_round(p, rounds, i);
    p.launch({.us = 5, .op = "aten::stack"});
  });
}

TEST(EqualRoundsTest, SeesMembersOfAnEnsembleByTheirModules) {
  const auto finding = find_rounds({.has_modules = true});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.pattern,
            "{} equal modules with weights of their own run one after the other, {} calls each");
  EXPECT_EQ(finding->brief.values.at(0).integer, 16);
  EXPECT_EQ(finding->brief.values.at(1).integer, 4);
  EXPECT_NE(finding->action.pattern.find("stack_module_state"), std::string::npos);
  // Four launches of a round leave the GPU waiting; one round of 16 stays.
  EXPECT_GT(finding->at_stake_ratio, 0.5);
}

TEST(EqualRoundsTest, SeesOneModelThatRunsAgainAndAgain) {
  const auto finding = find_rounds({.has_modules = true, .is_one_model = true});
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->brief.pattern.starts_with("One model runs {} times in a row"));
  EXPECT_NE(finding->action.pattern.find("once on all inputs"), std::string::npos);
}

TEST(EqualRoundsTest, WithoutStacksItSaysNothingOfTheWeights) {
  const auto finding = find_rounds({});
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->brief.pattern.starts_with("{} equal rounds of {} calls"));
}

// The first product takes as many numbers as another call makes: it may be what the round before made.
TEST(EqualRoundsTest, IsQuietAboutLayers) {
  EXPECT_FALSE(find_rounds({.taken = 24, .made = 24}));
  EXPECT_FALSE(find_rounds({.taken = 200, .made = 18}));
  EXPECT_FALSE(find_rounds({.made = 24, .has_modules = true, .is_one_model = true}));
}

TEST(EqualRoundsTest, IsQuietWhereTheNextRoundMayDependOnAValue) {
  EXPECT_FALSE(find_rounds({.last = "aten::argmax"}));
  EXPECT_FALSE(find_rounds({.last = "aten::multinomial"}));
  EXPECT_FALSE(find_rounds({.has_backward = true}));
}

// A table of tokens feeds a round of one model from outside. Layers may have tables of their own.
TEST(EqualRoundsTest, FollowsTokensThroughATableOfOneModel) {
  EXPECT_TRUE(find_rounds({.has_modules = true, .is_one_model = true, .looks_up = true}));
  EXPECT_FALSE(find_rounds({.has_modules = true, .looks_up = true}));
  EXPECT_FALSE(find_rounds({.looks_up = true}));
}

TEST(EqualRoundsTest, IsQuietAboutThreeRounds) { EXPECT_FALSE(find_rounds({.count = 3})); }

}  // namespace
}  // namespace lanescope::explain
