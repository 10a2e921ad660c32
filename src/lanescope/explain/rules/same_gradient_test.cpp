#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnDerivatives {
  int passes = 3;
  bool has_one_root = false;  // the same sum is gone back from again
  const char* root = "SumBackward0";
  const char* second = "[[64, 1]]";  // what the second node takes
};

void draw_node(ProgramSketch& p, const std::string& name, std::int64_t number, const char* dims) {
  p.begin_op("autograd::engine::evaluate_function: " + name, {.sequence = number, .fwd_thread = 1});
  p.begin_op(name, {.sequence = number, .fwd_thread = 1, .input_dims = dims});
  p.pass(96).end().end();
}

// Four steps: five nodes of one output (100 to 104 in the first step), and for each pass a new sum.
Trace draw_derivatives(const DrawnDerivatives& drawn) {
  ProgramSketch program;
  std::int64_t base = 100;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < drawn.passes; ++i) {
      draw_node(p, drawn.root, base + (drawn.has_one_root ? 10 : 10 + i), "[[]]");
      draw_node(p, "AddmmBackward0", base + 4, drawn.second);
      for (int k = 3; k >= 0; --k) draw_node(p, "TanhBackward0", base + k, "[[64, 8]]");
    }
    base += 100;
  });
  return program.trace();
}

// Two of three passes, six nodes of 100 us each.
TEST(SameGradientTest, CountsThePassesAfterTheFirst) {
  const auto finding = find_by_rule(draw_derivatives({}), "same-gradient");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(2 * 6 * 100));
  EXPECT_EQ(finding->verdict.values[1].integer, 5);
}

TEST(SameGradientTest, IsQuietAboutOnePass) {
  EXPECT_FALSE(find_by_rule(draw_derivatives({.passes = 1}), "same-gradient"));
}

// A loss of its own for each pass: its gradients depend on values.
TEST(SameGradientTest, IsQuietAboutDifferentLosses) {
  EXPECT_FALSE(find_by_rule(draw_derivatives({.root = "MseLossBackward0"}), "same-gradient"));
}

// Each pass starts from one of several results, as of unbind(). The nodes do not show from which one.
TEST(SameGradientTest, IsQuietAboutPartsOfAResult) {
  EXPECT_FALSE(find_by_rule(draw_derivatives({.second = "[[64], [], []]"}), "same-gradient"));
}

TEST(SameGradientTest, IsQuietWhereTheRootIsTheSame) {
  EXPECT_FALSE(find_by_rule(draw_derivatives({.has_one_root = true}), "same-gradient"));
}

}  // namespace
}  // namespace lanescope::explain
