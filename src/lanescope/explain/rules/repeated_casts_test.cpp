#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields cast_inputs(const std::string& dims, const std::string& types) {
  return {.input_dims = dims, .input_types = types};
}

// 50 us: float32 to bfloat16.
void cast(ProgramSketch& p, const std::string& size) {
  p.begin_op("aten::to", cast_inputs("[" + size + "]", R"(["float"])"));
  p.begin_op("aten::copy_",
             cast_inputs("[" + size + ", " + size + "]", R"(["c10::BFloat16", "float"])"));
  p.pass(46).end().end();
}

struct DrawnRepeatedCasts {
  int uses = 4;       // of weights of one shape, a step
  int gradients = 0;  // accumulated; 0: no backward pass
  bool is_autocast = false;
  bool is_frozen = false;           // casts without nodes
  std::string input = "[16, 256]";  // of the layer
};

// On the CPU: casts of [256, 256], each followed by its layer of 100 us, and the backward pass.
Trace draw_repeated_casts(const DrawnRepeatedCasts& drawn) {
  const std::string weight = "[256, 256]";
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int use = 0; use < drawn.uses; ++use) {
      if (!drawn.is_autocast) cast(p, weight);
      const std::string type = drawn.is_autocast ? "float" : "c10::BFloat16";
      p.begin_op("aten::linear", cast_inputs("[" + drawn.input + ", " + weight + "]",
                                             "[\"" + type + "\", \"" + type + "\"]"));
      if (drawn.is_autocast) cast(p, weight);
      p.pass(drawn.is_autocast ? 48 : 98).end();
    }
    const std::string node = "autograd::engine::evaluate_function: ";
    for (int use = 0; drawn.gradients > 0 && !drawn.is_frozen && use < drawn.uses; ++use) {
      p.begin_op(node + "ToCopyBackward0");
      p.begin_op("ToCopyBackward0", cast_inputs("[" + weight + "]", R"(["c10::BFloat16"])"));
      p.pass(6).end().end();
    }
    for (int i = 0; i < drawn.gradients; ++i) {
      p.begin_op(node + "torch::autograd::AccumulateGrad");
      p.begin_op("torch::autograd::AccumulateGrad",
                 cast_inputs("[" + weight + "]", R"(["float"])"));
      p.pass(6).end().end();
    }
  });
  return program.trace();
}

TEST(RepeatedCastsTest, CountsCastsBeyondTheWeightsThatHaveGradients) {
  for (const bool is_autocast : {false, true}) {
    const auto finding = find_by_rule(
        draw_repeated_casts({.gradients = 1, .is_autocast = is_autocast}), "repeated-casts");
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->at_stake_ns, us(150));  // 3 of 4 casts
    EXPECT_EQ(finding->action.pattern.find("autocast") != std::string::npos, is_autocast);
  }
}

TEST(RepeatedCastsTest, CountsAllCastsWithoutABackwardPass) {
  const auto finding = find_by_rule(draw_repeated_casts({}), "repeated-casts");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(200));
  EXPECT_EQ(finding->brief.values[1].integer, 4);
  EXPECT_NE(finding->try_next[0].find("model.to(torch.bfloat16)"), std::string::npos);
}

// Mixed precision casts each weight once a step.
TEST(RepeatedCastsTest, IsQuietAboutOneCastOfEachWeight) {
  EXPECT_FALSE(find_by_rule(draw_repeated_casts({.gradients = 4}), "repeated-casts"));
  EXPECT_FALSE(
      find_by_rule(draw_repeated_casts({.gradients = 4, .is_autocast = true}), "repeated-casts"));
}

TEST(RepeatedCastsTest, IsQuietAboutFrozenWeights) {
  EXPECT_FALSE(
      find_by_rule(draw_repeated_casts({.gradients = 1, .is_frozen = true}), "repeated-casts"));
}

// What has the shape of the weight may be the layer's input.
TEST(RepeatedCastsTest, IsQuietAboutInputs) {
  EXPECT_FALSE(find_by_rule(draw_repeated_casts({.input = "[256, 256]"}), "repeated-casts"));
}

struct DrawnRounds {
  int rounds = 6;
  int casts = 3;  // of each layer: input, weight, bias
  bool looks_up = true;
  bool has_backward = false;
};

// On a GPU, without steps and shapes: rounds of a lookup and four layers with casts of 40 us.
Trace draw_rounds(const DrawnRounds& drawn) {
  ProgramSketch p;
  p.launch({});  // the recording counts from its first launch
  for (int round = 0; round < drawn.rounds; ++round) {
    if (drawn.looks_up) p.op("aten::embedding", {}, "gather", 5);
    for (int layer = 0; layer < 4; ++layer) {
      p.begin_op("aten::linear");
      for (int i = 0; i < drawn.casts; ++i) {
        p.begin_op("aten::to").begin_op("aten::_to_copy");
        p.kernel("bfloat16_copy_kernel_cuda", 40).end().end();
      }
      p.op("aten::addmm", {}, "gemm", 20).end();
    }
  }
  if (drawn.has_backward) p.cpu_op("autograd::engine::evaluate_function: AddmmBackward0", 5);
  return p.trace();
}

TEST(RepeatedCastsTest, FindsWeightsCastInEachRoundWithoutShapes) {
  const auto finding = find_by_rule(draw_rounds({}), "repeated-casts");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[1].integer, 6);
  EXPECT_EQ(finding->verdict.values[2].integer, 8);  // 4 layers x (weight, bias)
  EXPECT_EQ(finding->spared_calls.size(), 48u);
  // The GPU's work of 48 casts of 40 us; the GPU is behind the CPU.
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), us(48 * 40), us(48));
  // Of two casts before a product with a bias, both are of weights.
  const auto both = find_by_rule(draw_rounds({.casts = 2}), "repeated-casts");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->verdict.values[2].integer, 8);
}

// A step of training casts weights that have changed; one cast is the input's; layers alone are no rounds.
TEST(RepeatedCastsTest, IsQuietWhereRoundsOrWeightsAreNotKnown) {
  EXPECT_FALSE(find_by_rule(draw_rounds({.has_backward = true}), "repeated-casts"));
  EXPECT_FALSE(find_by_rule(draw_rounds({.casts = 1}), "repeated-casts"));
  EXPECT_FALSE(find_by_rule(draw_rounds({.looks_up = false}), "repeated-casts"));
  EXPECT_FALSE(find_by_rule(draw_rounds({.rounds = 3}), "repeated-casts"));
}

}  // namespace
}  // namespace lanescope::explain
