#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

constexpr char kTwoFloats[] = R"(["float", "float"])";

// Four steps: norm and div of a database in 400 and 800 us, then the product with a query.
Trace draw_search(const std::function<void(ProgramSketch&)>& before,
                  const std::function<void(ProgramSketch&)>& after,
                  const char* product = "aten::matmul", const char* query = "[8, 64]") {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    before(p);
    p.begin_op("aten::linalg_vector_norm", inputs("[[65536, 64], [], [], [], []]",
                                                  R"(["float", "Scalar", "ScalarList", "", ""])",
                                                  {}, R"(["", "2.", "[1]", "True", ""])"))
        .kernel("norm", 400)
        .end();
    p.begin_op("aten::clamp_min", inputs("[[65536, 1], []]", R"(["float", "Scalar"])", {}, {}))
        .kernel("clamp", 10)
        .end();
    p.begin_op("aten::div", inputs("[[65536, 64], [65536, 64]]", kTwoFloats, {}, {}))
        .kernel("div", 800)
        .end();
    p.begin_op(product, inputs("[" + std::string(query) + ", [64, 65536]]", kTwoFloats, {}, {}))
        .kernel("gemm", 200)
        .end();
    after(p);
  });
  return program.trace();
}
void nothing(ProgramSketch&) {}
std::function<void(ProgramSketch&)> runs(const char* op, const char* dims) {
  return [=](ProgramSketch& p) {
    p.begin_op(op, inputs(dims, kTwoFloats, {}, {})).kernel("k", 100).end();
  };
}
bool is_reported(const Trace& trace) { return find_by_rule(trace, "constant-input").has_value(); }

TEST(ConstantInputTest, FindsADatabaseThatIsNormalisedForEachQuery) {
  const auto finding = find_by_rule(draw_search(nothing, nothing), "constant-input");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(400 + 10 + 800));
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::div");
  EXPECT_EQ(finding->brief.values.at(1).text, "[65536, 64]");
}

TEST(ConstantInputTest, IsQuietWhereAnOperatorMayMakeTheInput) {
  EXPECT_FALSE(is_reported(draw_search(runs("aten::add", "[[65536, 64], [1, 64]]"), nothing)));
  EXPECT_FALSE(is_reported(draw_search(runs("my::encode", "[[8, 64]]"), nothing)));
  EXPECT_FALSE(is_reported(draw_search(nothing, runs("aten::add_", "[[65536, 64], []]"))));
  EXPECT_FALSE(is_reported(draw_search(nothing, runs("aten::mm", "[[65536, 8], [8, 64]]"))));
  EXPECT_TRUE(is_reported(draw_search(nothing, runs("aten::relu", "[[8, 64]]"))));
}

// A layer's input, and a product of two large matrices.
TEST(ConstantInputTest, IsQuietAboutLayersAndLargeOthers) {
  EXPECT_FALSE(is_reported(draw_search(nothing, nothing, "aten::linear")));
  EXPECT_FALSE(is_reported(draw_search(nothing, nothing, "aten::matmul", "[16384, 64]")));
}

}  // namespace
}  // namespace lanescope::explain
