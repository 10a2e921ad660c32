#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// 20 us of the CPU for 2 us of work on [8, width].
void small_call(ProgramSketch& p, std::string_view op, int width) {
  p.begin_op(op, shapes("[[8, " + std::to_string(width) + "]]", R"(["float"])"));
  p.pass(20).launch({.us = 2}).end();
}

void run_equal_layers(ProgramSketch& p, int layers) {
  for (int i = 0; i < layers; ++i)
    for (const char* op : {"aten::layer_norm", "aten::linear", "aten::gelu", "aten::linear"})
      small_call(p, op, 64);
}

// A model: a call in, layers, a call out; then what joins its results.
std::optional<Finding> find_same_calls(int runs, bool has_ends, bool has_backward = false,
                                       std::string_view last = "aten::tanh") {
  return find_in_steps("same-calls-twice", [&](ProgramSketch& p) {
    for (int i = 0; i < runs; ++i) {
      if (has_ends) small_call(p, "aten::linear", 16);
      run_equal_layers(p, 5);
      if (has_ends) small_call(p, last, 64);
    }
    small_call(p, "aten::sub", 16);
    if (has_backward) small_call(p, "autograd::engine::evaluate_function: SubBackward0", 16);
  });
}

TEST(SameCallsTwiceTest, SeesOneModelForTwoInputs) {
  const auto finding = find_same_calls(2, true);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).integer, 22);
  EXPECT_THAT(finding->brief.pattern, ::testing::HasSubstr(", once per step, "));
}

TEST(SameCallsTwiceTest, IsQuietAboutLayersLoopsAndTraining) {
  EXPECT_FALSE(find_same_calls(1, true));
  EXPECT_FALSE(find_same_calls(2, false));  // ten equal layers
  EXPECT_FALSE(find_same_calls(3, true));   // rounds that may need each other
  EXPECT_FALSE(find_same_calls(2, true, true));
  EXPECT_FALSE(find_same_calls(2, true, false, "aten::is_nonzero"));  // decides by a value
}

// A network of blocks that are alike but do not follow each other at one distance, with three calls of its own before them; twice, or once.
TEST(SameCallsTwiceTest, SeesAModelWhoseBlocksAreMostOfItsCalls) {
  const auto find = [](int runs) {
    return find_in_steps("same-calls-twice", [&](ProgramSketch& p) {
      small_call(p, "aten::randn", 16);
      for (int run = 0; run < runs; ++run) {
        for (const char* op : {"aten::arange", "aten::exp", "aten::sin"}) small_call(p, op, 16);
        for (int block = 0; block < 9; ++block) {
          for (int i = 0; i < 9; ++i)
            for (const char* op : {"aten::group_norm", "aten::conv2d"}) small_call(p, op, 64);
          if (block % 3 == 1) small_call(p, "aten::cat", 64);
          if (block % 3 == 2) small_call(p, "aten::silu", 64);
        }
      }
      small_call(p, "aten::sub", 16);
    });
  };
  const auto twice = find(2);
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->brief.values.at(0).integer, 171);
  EXPECT_TRUE(twice->gain_is_bound);
  EXPECT_EQ(twice->spared_calls.size() % 171, 0U);
  EXPECT_FALSE(find(1));
}

// Two equal layers: each projects to queries, keys and values, a third of its calls, and has the others once.
TEST(SameCallsTwiceTest, ALayerWithThreeProjectionsIsNoModel) {
  EXPECT_FALSE(find_in_steps("same-calls-twice", [](ProgramSketch& p) {
    small_call(p, "aten::conv2d", 16);
    for (int layer = 0; layer < 2; ++layer) {
      for (int i = 0; i < 3; ++i)
        for (const char* op : {"aten::linear", "aten::view", "aten::mul"}) small_call(p, op, 64);
      for (int i = 0; i < 14; ++i) small_call(p, "aten::other" + std::to_string(i), 64);
    }
    small_call(p, "aten::sub", 16);
  }));
}

// A decoder's layer: two attentions of 22 equal calls and a part that it has once. In one step of three layers the second
// attention works on what the first made; one such pair in a step may be one model for two inputs.
TEST(SameCallsTwiceTest, TwoAttentionsOfOneLayerAreNoModel) {
  const auto find_in_layers = [](int layers) {
    return find_in_steps("same-calls-twice", [&](ProgramSketch& p) {
      small_call(p, "aten::conv2d", 16);
      for (int layer = 0; layer < layers; ++layer) {
        for (int i = 0; i < 2; ++i) {
          small_call(p, "aten::linear", 16);
          run_equal_layers(p, 5);
          small_call(p, "aten::tanh", 64);
        }
        for (const char* op : {"aten::layer_norm", "aten::gelu", "aten::add"})
          small_call(p, op, 32);
      }
    });
  };
  EXPECT_TRUE(find_in_layers(1));
  EXPECT_FALSE(find_in_layers(3));
}

}  // namespace
}  // namespace lanescope::explain
