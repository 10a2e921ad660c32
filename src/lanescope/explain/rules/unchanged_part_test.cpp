#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

constexpr char kPairOfFloats[] = R"(["float", "float"])";

struct Texts {
  // Before the texts are looked up.
  std::function<void(ProgramSketch&)> before = [](ProgramSketch&) {};
  std::int64_t image_bytes = 1 << 20;
  const char* after_layers = "aten::relu";
  const char* last = "aten::eq";
};

// Four steps: an image is copied, then 100 texts of 8 words go through three layers of 100 us each, and meet the image's features.
Trace draw_texts(const Texts& texts) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    if (texts.image_bytes > 0)
      p.begin_op("aten::to", inputs("[[16, 512]]", R"(["float"])", "", R"(["", "6"])"))
          .copy(20, texts.image_bytes, "Memcpy HtoD (Pinned -> Device)")
          .end();
    p.begin_op("aten::linear", inputs("[[16, 512], [64, 512]]", kPairOfFloats, "", R"(["", ""])"))
        .kernel("gemm", 50)
        .end();
    texts.before(p);
    p.begin_op("aten::embedding",
               inputs("[[5000, 64], [100, 8]]", R"(["float", "long int"])", "", R"(["", ""])"))
        .kernel("gather", 10)
        .end();
    p.begin_op("aten::add", inputs("[[100, 8, 64], [1, 8, 64]]", kPairOfFloats, "", R"(["", ""])"))
        .kernel("add", 10)
        .end();
    for (int layer = 0; layer < 3; ++layer) {
      p.begin_op("aten::layer_norm",
                 inputs("[[100, 8, 64], [], [64]]", R"(["float", "ScalarList", "float"])", "",
                        R"(["", "[64]", ""])"))
          .kernel("norm", 10)
          .end();
      p.begin_op("aten::linear",
                 inputs("[[100, 8, 64], [64, 64]]", kPairOfFloats, "", R"(["", ""])"))
          .kernel("gemm", 100)
          .end();
      p.begin_op("aten::add",
                 inputs("[[100, 8, 64], [100, 8, 64]]", kPairOfFloats, "", R"(["", ""])"))
          .kernel("add", 10)
          .end();
    }
    p.begin_op(texts.after_layers, inputs("[[100, 8, 64]]", R"(["float"])", "", R"([""])"))
        .kernel("k", 10)
        .end();
    p.begin_op("aten::select", inputs("[[100, 8, 64], [], []]", R"(["float", "Scalar", "Scalar"])",
                                      "", R"(["", "1", "-1"])"))
        .end();
    p.begin_op("aten::matmul", inputs("[[16, 64], [64, 100]]", kPairOfFloats, "", R"(["", ""])"))
        .kernel("gemm", 50)
        .end();
    p.begin_op(texts.last, inputs("[[16, 100], [16, 100]]", kPairOfFloats, "", R"(["", ""])"))
        .kernel("k", 10)
        .end();
  });
  return program.trace();
}
bool is_told(const Texts& texts) {
  return find_by_rule(draw_texts(texts), "unchanged-part").has_value();
}
std::function<void(ProgramSketch&)> runs(const char* op, const char* dims, const char* types,
                                         const char* concrete) {
  return [=](ProgramSketch& p) {
    p.begin_op(op, inputs(dims, types, "", concrete)).kernel("k", 5).end();
  };
}

TEST(UnchangedPartTest, FindsTextsThatAreEncodedForEachImage) {
  const auto finding = find_by_rule(draw_texts({}), "unchanged-part");
  ASSERT_TRUE(finding);
  // 10 + 10 for the lookup and positions, 3 x 120 for layers, 10 after them; not what takes the image.
  EXPECT_EQ(finding->at_stake_ns, us(390));
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::embedding");
  EXPECT_EQ(finding->brief.values.at(1).integer, 11);
}

TEST(UnchangedPartTest, IsQuietWhereTheTextsMayBeNew) {
  constexpr char kLong[] = R"(["long int", "Scalar", "Scalar", "Scalar", "Scalar"])";
  // Copied, made of scores, or a slice of more texts.
  EXPECT_FALSE(is_told({.before = runs("aten::to", "[[100, 8]]", R"(["long int"])", R"([""])")}));
  EXPECT_FALSE(
      is_told({.before = runs("aten::argmax", "[[100, 8, 64], [], []]",
                              R"(["float", "Scalar", "Scalar"])", R"(["", "2", "False"])")}));
  EXPECT_FALSE(is_told({.before = runs("aten::slice", "[[900, 8], [], [], [], []]", kLong,
                                       R"(["", "0", "100", "200", "1"])")}));
  EXPECT_FALSE(is_told({.before = runs("my::tokenize", "[[100]]", R"(["long int"])", R"([""])")}));
  // An operator on other whole numbers does not make the texts.
  EXPECT_TRUE(
      is_told({.before = runs("aten::argmax", "[[16, 64], [], []]",
                              R"(["float", "Scalar", "Scalar"])", R"(["", "1", "False"])")}));
}

TEST(UnchangedPartTest, IsQuietWithoutNewInputAndInTraining) {
  EXPECT_FALSE(is_told({.image_bytes = 0}));
  EXPECT_FALSE(is_told({.last = "autograd::engine::evaluate_function: MmBackward0"}));
}

// Random numbers after the layers end the part: 10 us less.
TEST(UnchangedPartTest, EndsAtRandomNumbers) {
  const auto finding =
      find_by_rule(draw_texts({.after_layers = "aten::dropout"}), "unchanged-part");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(380));
}

}  // namespace
}  // namespace lanescope::explain
