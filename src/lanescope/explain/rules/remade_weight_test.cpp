#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

struct DrawnWeight {
  std::string_view made = "[512, 512]";
  std::string_view input = "[8, 512]";
  const char* last = "aten::mul";
  bool goes_back = false;
};

// A cast of 100 us and a product with scales of 60 us make the weight; linear takes 50 us, and 100 us are other work.
std::optional<Finding> find_remade(const DrawnWeight& drawn) {
  ProgramSketch program;
  const std::string made(drawn.made);
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op("aten::mm", inputs("[[8, 8], [8, 8]]", R"(["float", "float"])", "", ""));
    p.kernel("gemm", 100).end();
    p.begin_op("aten::to", inputs("[" + made + "]", R"(["signed char"])", "", ""));
    p.kernel("cast", 100).end();
    p.begin_op(drawn.last, inputs("[" + made + ", [512, 1]]", R"(["float", "float"])", "", ""));
    p.kernel("mul", 60).end();
    p.begin_op("aten::linear", inputs("[" + std::string(drawn.input) + ", [512, 512], []]",
                                      R"(["float", "float", ""])", "", ""));
    p.kernel("gemm", 50).end();
    if (drawn.goes_back)
      p.begin_op("autograd::engine::evaluate_function: AddmmBackward0").kernel("k", 10).end();
  });
  return find_by_rule(program.trace(), "remade-weight");
}

TEST(RemadeWeightTest, CountsWhatMakesTheWeight) {
  const auto finding = find_remade({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(160));
  EXPECT_EQ(finding->brief.values[0].text, "aten::mul");
  EXPECT_EQ(finding->brief.values[1].text, "[512, 512]");
  EXPECT_THAT(finding->brief.pattern, ::testing::HasSubstr("once per step"));
}

TEST(RemadeWeightTest, IsQuietAboutActivationsAndTraining) {
  EXPECT_FALSE(find_remade({.made = "[8, 512]"}));      // the layer's input
  EXPECT_FALSE(find_remade({.input = "[4096, 512]"}));  // larger than the weight
  EXPECT_FALSE(find_remade({.input = "[512, 512]"}));   // either of both
  EXPECT_FALSE(find_remade({.last = "aten::softmax"}));
  EXPECT_FALSE(find_remade({.goes_back = true}));
}

}  // namespace
}  // namespace lanescope::explain
