#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields constant_inputs(const std::string& dims, const std::string& types,
                       const std::string& concrete) {
  return {.input_dims = dims, .input_types = types, .concrete_inputs = concrete};
}

// 100 us: aten::arange, or another that makes [length].
void make(ProgramSketch& p, const char* op, int length) {
  const std::string size = std::to_string(length);
  p.begin_op(op, constant_inputs("[[]]", R"(["Scalar"])", "[\"" + size + "\"]"));
  p.begin_op("aten::empty", constant_inputs("[[]]", R"(["ScalarList"])", "[\"[" + size + "]\"]"));
  p.pass(96).end().end();
}

// 100 us, of tensors of these sizes.
void compute(ProgramSketch& p, const char* op, const std::string& dims, const std::string& types,
             const std::string& concrete = R"(["", ""])") {
  p.begin_op(op, constant_inputs(dims, types, concrete)).pass(98).end();
}

struct DrawnRepeatedConstants {
  const char* source = "aten::arange";
  int layers = 4;
  int longer_by = 0;  // each step
  bool has_counter = false;
  bool takes_input = false;  // sin of a tensor of the program
};

// On the CPU, layers of 300 us: arange, sin of it, and the sum with the layer's input.
Trace draw_repeated_constants(const DrawnRepeatedConstants& drawn) {
  ProgramSketch program;
  int length = 64;
  program.steps(4, [&](ProgramSketch& p) {
    const std::string size = std::to_string(length);
    for (int layer = 0; layer < drawn.layers; ++layer) {
      make(p, drawn.source, length);
      if (drawn.has_counter)
        compute(p, "aten::mul", "[[" + size + "], []]", R"(["float", "long int"])");
      else
        compute(p, "aten::sin", drawn.takes_input ? "[[8]]" : "[[" + size + "]]", R"(["float"])");
      compute(p, "aten::add", "[[8, " + size + "], [" + size + "]]", R"(["float", "float"])");
    }
    length += drawn.longer_by;
  });
  return program.trace();
}

// Of each layer 200 us. The sum takes a tensor of the program.
TEST(RepeatedConstantsTest, CountsWhatDependsOnNoTensorOfTheProgram) {
  const auto finding = find_by_rule(draw_repeated_constants({}), "repeated-constants");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(800));
  EXPECT_EQ(finding->brief.values[0].integer, 4);  // times a step
  EXPECT_EQ(finding->brief.values[2].text, "aten::sin");
}

TEST(RepeatedConstantsTest, KeepsOneAStepWhereTheResultMayChangeWithTheStep) {
  for (const DrawnRepeatedConstants& drawn :
       {DrawnRepeatedConstants{.longer_by = 1}, DrawnRepeatedConstants{.has_counter = true}}) {
    const auto finding = find_by_rule(draw_repeated_constants(drawn), "repeated-constants");
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->at_stake_ns, us(600));
  }
}

TEST(RepeatedConstantsTest, SaysWhenItIsOnceInEachStep) {
  const auto finding = find_by_rule(draw_repeated_constants({.layers = 1}), "repeated-constants");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(200));
  EXPECT_NE(finding->brief.pattern.find("in each step"), std::string::npos);
}

TEST(RepeatedConstantsTest, IsQuietWhereSomethingChanges) {
  EXPECT_FALSE(
      find_by_rule(draw_repeated_constants({.layers = 1, .longer_by = 1}), "repeated-constants"));
  EXPECT_FALSE(find_by_rule(draw_repeated_constants({.layers = 1, .has_counter = true}),
                            "repeated-constants"));
}

// A program keeps its state in tensors that begin as zeros.
TEST(RepeatedConstantsTest, IsQuietAboutZeros) {
  EXPECT_FALSE(
      find_by_rule(draw_repeated_constants({.source = "aten::zeros"}), "repeated-constants"));
}

// Of the layer only the arange is one.
TEST(RepeatedConstantsTest, EndsBeforeATensorOfTheProgram) {
  const auto finding =
      find_by_rule(draw_repeated_constants({.takes_input = true}), "repeated-constants");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(400));
}

// On the GPU, layers that make a mask for each document, of lengths that differ from batch to batch; then a product. With `apart` the
// product comes after each mask.
Trace draw_masks(bool equal_lengths, bool equal_layers, bool apart) {
  ProgramSketch program;
  int step = 0;
  program.steps(3, [&](ProgramSketch& p) {
    ++step;
    for (int layer = 0; layer < 4; ++layer) {
      for (int document = 0; document < 5; ++document) {
        const int more = (equal_lengths ? 0 : 10 * step + document) + (equal_layers ? 0 : layer);
        const std::string n = std::to_string(8 + more), square = "[" + n + ", " + n + "]";
        p.begin_op("aten::ones",
                   constant_inputs("[[]]", R"(["ScalarList"])", "[\"" + square + "\"]"));
        p.begin_op("aten::empty",
                   constant_inputs("[[]]", R"(["ScalarList"])", "[\"" + square + "\"]"));
        p.pass(18).end().launch({.us = 2, .op = "aten::fill_"}).end();
        p.begin_op("aten::tril", constant_inputs("[" + square + ", []]", R"(["float", "Scalar"])",
                                                 R"(["", "0"])"));
        p.pass(20).launch({.us = 2, .op = "aten::triu_tril"}).end();
        p.begin_op("aten::copy_", constant_inputs("[[99, 99], " + square + "]",
                                                  R"(["float", "float"])", R"(["", ""])"));
        p.pass(20).launch({.us = 2, .op = "aten::copy"}).end();
        if (apart) p.launch({.us = 2, .op = "aten::linear"});
      }
      p.launch({.us = 2, .op = "aten::linear"});
    }
  });
  return program.trace();
}

TEST(RepeatedConstantsTest, LayersMayShareWhatFollowsFromTheBatch) {
  const auto finding = find_by_rule(draw_masks(false, true, false), "repeated-constants");
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->brief.pattern.starts_with("The same {} results are computed in each"));
  EXPECT_EQ(finding->brief.values.at(0).integer, 5);
  EXPECT_EQ(finding->brief.values.at(1).integer, 4);
  EXPECT_EQ(finding->action.pattern.find("register_buffer"), std::string::npos);
  EXPECT_GT(finding->at_stake_ratio, 0.6);  // nearly three of four layers
  EXPECT_LT(finding->at_stake_ratio, 0.75);
  // Equal lengths in all batches: a buffer keeps the mask.
  const auto kept = find_by_rule(draw_masks(true, true, false), "repeated-constants");
  ASSERT_TRUE(kept);
  EXPECT_NE(kept->action.pattern.find("register_buffer"), std::string::npos);
}

TEST(RepeatedConstantsTest, LayersWithMasksOfTheirOwnShareNothing) {
  for (const Trace& trace : {draw_masks(false, false, false), draw_masks(false, true, true)}) {
    const auto finding = find_by_rule(trace, "repeated-constants");
    EXPECT_TRUE(!finding || finding->brief.pattern.find("rounds") == std::string::npos);
  }
}

// ones, triu and the cast of it make a mask; two tensors of one shape must both be made here.
TEST(RepeatedConstantsTest, FollowsMasksAndTellsEqualShapesApart) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int layer = 0; layer < 2; ++layer) {
      p.begin_op("aten::ones", constant_inputs("[[]]", R"(["ScalarList"])", R"(["[8, 8]"])"));
      p.begin_op("aten::empty", constant_inputs("[[]]", R"(["ScalarList"])", R"(["[8, 8]"])"));
      p.pass(96).end().end();
      compute(p, "aten::triu", "[[8, 8], []]", R"(["float", "Scalar"])", R"(["", "1"])");
      compute(p, "aten::mul", "[[8, 8], []]", R"(["float", "double"])");
      compute(p, "aten::sub", "[[8, 8], [8, 8]]", R"(["float", "float"])");  // scores - mask?
      compute(p, "aten::mm", "[[8, 8], [8, 8]]", R"(["float", "float"])");
    }
  });
  const auto finding = find_by_rule(program.trace(), "repeated-constants");
  ASSERT_TRUE(finding);
  // triu and mul made two of that shape: sub may be of both.
  EXPECT_EQ(finding->at_stake_ns, us(800));
}

// Sizes of a damaged file: their product is no number, so the run ends before the operator.
TEST(RepeatedConstantsTest, EndsAtSizesThatNoTensorHas) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int layer = 0; layer < 4; ++layer) {
      make(p, "aten::arange", 64);
      compute(p, "aten::repeat", "[[64], []]", R"(["float", "ScalarList"])",
              R"(["", "[9000000000000000000]"])");
    }
  });
  const auto finding = find_by_rule(program.trace(), "repeated-constants");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(400));  // arange alone
}

}  // namespace
}  // namespace lanescope::explain
