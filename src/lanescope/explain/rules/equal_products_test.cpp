#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct Products {
  int count = 12;
  bool picks_weight = true;  // by an index, as it does the input; else all turns use one weight
  bool shapes = true;
  bool batched = false;
};

void select(ProgramSketch& p, const std::string& dims, int index, bool shapes) {
  testing::Fields inputs;
  if (shapes) {
    inputs.input_dims = "[" + dims + ", [], []]";
    inputs.concrete_inputs = R"(["", "0", ")" + std::to_string(index) + R"("])";
  }
  p.sketch().op("aten::select", ProgramSketch::at(p.cpu_us()), ProgramSketch::at(4), inputs);
  p.pass(4);
}

// A turn: two selects of 4 us each, then a product of 10 us whose kernel runs 1 us, 2 us after its call.
Trace drawn_products(const Products& loop) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step();
    if (loop.batched)
      program.launch({.us = 10, .op = "aten::bmm", .dims = "[[12, 8, 16], [12, 16, 16]]"});
    for (int i = 0; !loop.batched && i < loop.count; ++i) {
      select(program, "[12, 8, 16]", i, loop.shapes);
      if (loop.picks_weight) select(program, "[12, 16, 16]", i, loop.shapes);
      program.launch({.us = 1,
                      .op = "aten::mm",
                      .dims = loop.shapes ? "[[8, 16], [16, 16]]" : std::string_view()});
    }
    program.launch({.us = 100}).wait().end();
  }
  return program.trace();
}

// A turn takes 18 us, its call ends 15 us into it and the kernel runs from 17 to 18 us: in each of 12
// turns the GPU waits 15 us for the CPU and works 1 us.
TEST(EqualProductsTest, CountsTheWaitsOfTheLoopAndItsSmallWork) {
  const auto finding = find_by_rule(drawn_products({}), "equal-products");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 12);  // a step
  EXPECT_EQ(finding->verdict.values.at(1).text, "aten::mm");
  EXPECT_EQ(finding->verdict.values.at(3).integer, 12 * us(15));
  EXPECT_EQ(finding->at_stake_ns, 12 * us(15) + 12 * us(1));
  EXPECT_NE(finding->confidence, Confidence::kLow);
}

TEST(EqualProductsTest, SaysThatItIsAHintWithoutShapes) {
  const auto finding = find_by_rule(drawn_products({.shapes = false}), "equal-products");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->confidence, Confidence::kLow);
  EXPECT_TRUE(finding->action.pattern.starts_with("If none needs"));
}

TEST(EqualProductsTest, IsQuietBelowEight) {
  EXPECT_TRUE(find_by_rule(drawn_products({.count = 8}), "equal-products"));
  EXPECT_FALSE(find_by_rule(drawn_products({.count = 7}), "equal-products"));
}

// y = linear(y, w[i], b[i]), and y = y[:, 0] and y[mask] before a product: each needs the one before.
TEST(EqualProductsTest, IsQuietAboutLayersAndMasksWithoutShapes) {
  const auto drawn = [](std::string_view second, std::string_view product) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step();
      for (int i = 0; i < 12; ++i)
        program.cpu_op("aten::select", 4).cpu_op(second, 4).launch({.us = 1, .op = product});
      program.wait().end();
    }
    return find_by_rule(program.trace(), "equal-products").has_value();
  };
  EXPECT_TRUE(drawn("aten::select", "aten::matmul"));
  EXPECT_FALSE(drawn("aten::select", "aten::linear"));
  EXPECT_FALSE(drawn("aten::index", "aten::matmul"));
}

// An RNN: each step of time has its input, and all have one weight. They may need each other.
TEST(EqualProductsTest, IsQuietAboutRecurrence) {
  EXPECT_FALSE(find_by_rule(drawn_products({.picks_weight = false}), "equal-products"));
  EXPECT_FALSE(
      find_by_rule(drawn_products({.picks_weight = false, .shapes = false}), "equal-products"));
}

TEST(EqualProductsTest, IsQuietAboutOneBatchedProduct) {
  EXPECT_FALSE(find_by_rule(drawn_products({.batched = true}), "equal-products"));
}

// The layers of a network: the output of one is the input of the next. With another number of columns
// than rows it cannot be: several heads of one input.
TEST(EqualProductsTest, TellsHeadsFromLayers) {
  const auto drawn = [](std::string_view dims) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step();
      for (int i = 0; i < 12; ++i) program.launch({.us = 1, .op = "aten::linear", .dims = dims});
      program.wait().end();
    }
    return find_by_rule(program.trace(), "equal-products").has_value();
  };
  EXPECT_FALSE(drawn("[[8, 16], [16, 16], [16]]"));
  EXPECT_TRUE(drawn("[[8, 16], [4, 16], [4]]"));
}

}  // namespace
}  // namespace lanescope::explain
