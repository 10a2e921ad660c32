#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// On the CPU: one_hot of 32 indices in 100 us, a product of 100 us, and its backward part of 50.
Trace draw_one_hot_product(const std::string& classes, const std::string& left,
                           bool is_logits = false) {
  ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](ProgramSketch& p) {
    const auto make = [&] {
      p.begin_op("aten::one_hot", {.input_dims = "[[32], []]",
                                   .input_types = R"(["long int", "Scalar"])",
                                   .concrete_inputs = "[\"\", \"" + classes + "\"]"});
      p.pass(98).end();
    };
    if (!is_logits) make();
    for (const char* op : {"aten::matmul", "aten::mm"})
      p.begin_op(op, {.sequence = number,
                      .input_dims = "[" + left + ", [500, 8]]",
                      .input_types = R"(["float", "float"])"});
    p.pass(96).end().end();
    if (is_logits) make();
    p.begin_op("autograd::engine::evaluate_function: MmBackward0",
               {.sequence = number++, .fwd_thread = 1});
    p.begin_op("aten::mm",
               {.input_dims = "[[32, 500], [500, 8]]", .input_types = R"(["float", "float"])"});
    p.pass(46).end().end();
  });
  return program.trace();
}

// 100 us of one_hot, 100 of the product, 50 of its node.
TEST(OneHotProductTest, CountsTheProductsThatTakeTheMatrix) {
  const auto finding = find_by_rule(draw_one_hot_product("500", "[32, 500]"), "one-hot-product");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(250));
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
  EXPECT_EQ(finding->brief.values[0].integer, 32);
  EXPECT_EQ(finding->brief.values[1].integer, 500);
}

TEST(OneHotProductTest, IsQuietAboutFewClassesAndOtherMatrices) {
  EXPECT_FALSE(find_by_rule(draw_one_hot_product("64", "[32, 64]"), "one-hot-product"));
  EXPECT_FALSE(find_by_rule(draw_one_hot_product("400", "[64, 500]"), "one-hot-product"));
}

// A loss by one-hot labels: the gradient of the logits has their shape, and is multiplied.
TEST(OneHotProductTest, IsQuietAboutGradientsOfLogits) {
  EXPECT_FALSE(find_by_rule(draw_one_hot_product("500", "[32, 8]", true), "one-hot-product"));
}

// [500, 32] x [32, 8]: rows are added up by class; [32, 500] x [500, 8] takes rows of a table.
TEST(OneHotProductTest, TellsASumByClassFromALookup) {
  const auto action = [](const char* left) {
    return find_by_rule(draw_one_hot_product("500", left), "one-hot-product")->action.pattern;
  };
  EXPECT_NE(action("[500, 32]").find("index_add_"), std::string::npos);
  EXPECT_NE(action("[32, 500]").find("F.embedding"), std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain
