#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

struct DrawnPrefix {
  std::string_view row = "[1, 96]";
  std::string_view joined = "[[8, 96], [8, 32]]";
  std::string_view dim = "1";
  std::string_view rows = "[1024, 64]";  // that linear takes: 8 x 128
};

// 300 us on all rows, and a product of 100 us without them.
std::optional<Finding> find_prefix(const DrawnPrefix& drawn) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op("aten::expand",
               inputs("[" + std::string(drawn.row) + ", [], []]",
                      R"(["long int", "ScalarList", "Scalar"])", "", R"(["", "[8, -1]", "False"])"))
        .end();
    p.begin_op("aten::cat",
               inputs("[" + std::string(drawn.joined) + ", []]", R"(["TensorList", "Scalar"])", "",
                      R"(["", ")" + std::string(drawn.dim) + R"("])"));
    p.end();
    p.begin_op("aten::linear", inputs("[" + std::string(drawn.rows) + ", [64, 64], []]",
                                      R"(["float", "float", ""])", "", ""));
    p.kernel("gemm", 300).end();
    p.begin_op("aten::mm", inputs("[[8, 64], [64, 64]]", R"(["float", "float"])", "", ""));
    p.kernel("gemm", 100).end();
  });
  return find_by_rule(program.trace(), "repeated-prefix");
}

// 96 of 128 tokens are the same in 8 rows: 7/8 x 96/128 of 300 us.
TEST(RepeatedPrefixTest, CountsThePartThatIsDoneAgain) {
  const auto finding = find_prefix({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(300) * 7 * 96 / (8 * 128));
  EXPECT_EQ(finding->brief.values[0].integer, 8);
  EXPECT_EQ(finding->brief.values[1].integer, 96);
  EXPECT_EQ(finding->brief.values[2].integer, 128);
  EXPECT_TRUE(find_prefix({.rows = "[8, 128, 64]"}));
  EXPECT_TRUE(find_prefix({.rows = "[8, 4, 128, 16]"}));
}

TEST(RepeatedPrefixTest, IsQuietWhereLittleIsShared) {
  EXPECT_FALSE(find_prefix({.row = "[8, 96]"}));  // rows of their own
  EXPECT_FALSE(find_prefix({.row = "[1, 1]", .joined = "[[8, 1], [8, 127]]"}));  // a class token
  EXPECT_FALSE(find_prefix({.joined = "[[8, 96], [8, 97]]"}));  // more that differs
  EXPECT_FALSE(find_prefix({.joined = "[[2, 96], [2, 32]]"}));  // two rows
  EXPECT_FALSE(find_prefix({.dim = "0"}));                      // below each other
  EXPECT_FALSE(find_prefix({.rows = "[8, 64]"}));               // other work
}

}  // namespace
}  // namespace lanescope::explain
