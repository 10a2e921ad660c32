#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

// Four steps of `products` products of 50 us. `between`: this operator runs before every fourth one.
Trace draw_products(int products, const char* dims, const char* between = nullptr) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < products; ++i) {
      if (between && i % 4 == 3)
        p.begin_op(between, inputs("[[512, 512]]", R"(["float"])", {}, {})).kernel("k", 10).end();
      p.begin_op("aten::matmul", inputs(dims, R"(["float", "float"])", {}, {}))
          .kernel("gemm", 50)
          .end();
    }
  });
  return program.trace();
}

// The 16th power: 15 products of 50 us, of which squaring needs 4.
TEST(RepeatedProductTest, FindsAPower) {
  const auto finding =
      find_by_rule(draw_products(15, "[[512, 512], [512, 512]]"), "repeated-product");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(11 * 50));
  EXPECT_EQ(finding->action.values.at(0).integer, 4);
  EXPECT_EQ(finding->action.values.at(1).integer, 15);
}

TEST(RepeatedProductTest, IsQuietAboutLayersAndOtherSizes) {
  EXPECT_FALSE(find_by_rule(draw_products(15, "[[512, 512], [512, 512]]", "aten::relu"),
                            "repeated-product"));
  EXPECT_FALSE(find_by_rule(draw_products(15, "[[64, 512], [512, 512]]"), "repeated-product"));
  EXPECT_FALSE(find_by_rule(draw_products(5, "[[512, 512], [512, 512]]"), "repeated-product"));
}

}  // namespace
}  // namespace lanescope::explain
