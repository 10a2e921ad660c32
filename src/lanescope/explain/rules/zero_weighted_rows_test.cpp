#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

struct DrawnGate {
  std::string_view index = "[256, 4]";  // the rows that topk chose for each part
  std::string_view weighted = "[[1024, 1], [1024, 64]]";
  int parts = 4;
  const char* fill = "aten::scatter";
};

// Scores of 1,024 rows for 4 parts. Each part takes 100 us and 20 us of its weight; other work 100 us.
std::optional<Finding> find_gate(const DrawnGate& drawn) {
  const char* three = R"(["float", "Scalar", "long int", "float"])";
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op("aten::topk", inputs("[[1024, 4], [], []]", R"(["float", "Scalar", "Scalar"])", "",
                                    R"(["", "256", "0"])"));
    p.end();
    p.begin_op(drawn.fill, inputs("[[1024, 4], [], " + std::string(drawn.index) + ", " +
                                      std::string(drawn.index) + "]",
                                  three, "", R"(["", "0", "", ""])"));
    p.end();
    for (int i = 0; i < drawn.parts; ++i) {
      p.begin_op("aten::linear",
                 inputs("[[1024, 64], [64, 64], []]", R"(["float", "float", ""])", "", ""));
      p.kernel("gemm", 100).end();
      p.begin_op("aten::mul", inputs(std::string(drawn.weighted), R"(["float", "float"])", "", ""));
      p.kernel("mul", 20).end();
    }
    p.begin_op("aten::mm", inputs("[[64, 64], [64, 64]]", R"(["float", "float"])", "", ""));
    p.kernel("gemm", 100).end();
  });
  return find_by_rule(program.trace(), "zero-weighted-rows");
}

// A quarter of the weights is set: three quarters of 4 x 120 us.
TEST(ZeroWeightedRowsTest, CountsTheRowsThatCountNothing) {
  const auto finding = find_gate({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(480) * 3 / 4);
  EXPECT_EQ(finding->brief.values[0].integer, 4);
  EXPECT_EQ(finding->brief.values[1].integer, 1024);
  EXPECT_NEAR(finding->brief.values[2].real, 0.75, 1e-6);
}

TEST(ZeroWeightedRowsTest, IsQuietWhereMostCounts) {
  EXPECT_FALSE(find_gate({.index = "[1024, 3]"}));  // three of four parts
  EXPECT_FALSE(find_gate({.parts = 3}));            // not a result for each part
  EXPECT_FALSE(find_gate({.fill = "aten::gather"}));
  EXPECT_FALSE(find_gate({.weighted = "[[256, 1], [256, 64]]"}));  // the chosen rows only
}

}  // namespace
}  // namespace lanescope::explain
