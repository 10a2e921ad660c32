#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

// Four steps: a transform of 1000 numbers to `length`, a product, the inverse and a slice of `kept`: 300 us each but the slice.
Trace draw_convolution(std::int64_t length, std::int64_t kept, const char* after = nullptr) {
  const std::string whole = std::to_string(length), half = std::to_string(length / 2 + 1);
  const std::string padded = "[[8, " + whole + "], [], [], [], []]";
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op("aten::fft_rfft", inputs("[[8, 1000], [], [], []]", R"(["float", "", "", ""])", {},
                                        R"(["", ")" + whole + R"(", "-1", ""])"))
        .kernel("fft", 300)
        .end();
    p.begin_op("aten::mul", inputs("[[8, " + half + "], [" + half + "]]",
                                   R"(["c10::complex<float>", "c10::complex<float>"])", {}, {}))
        .kernel("mul", 300)
        .end();
    p.begin_op("aten::fft_irfft",
               inputs("[[8, " + half + "], [], [], []]", R"(["c10::complex<float>", "", "", ""])",
                      {}, R"(["", ")" + whole + R"(", "-1", ""])"))
        .kernel("fft", 300)
        .end();
    p.begin_op("aten::slice", inputs(padded, R"(["float", "", "", "", ""])", {},
                                     R"(["", "1", "0", ")" + std::to_string(kept) + R"(", "1"])"))
        .end();
    if (after) p.begin_op(after, inputs(padded, R"(["float"])", {}, {})).kernel("k", 10).end();
  });
  return program.trace();
}

// Of 4000 numbers 1000 are used: three quarters of 900 us.
TEST(PaddedLengthTest, FindsATransformOfZeros) {
  const auto finding = find_by_rule(draw_convolution(4000, 1000), "padded-length");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(675));
  EXPECT_EQ(finding->brief.values.at(1).integer, 4000);
  EXPECT_EQ(finding->brief.values.at(3).integer, 1000);
}

TEST(PaddedLengthTest, IsQuietWhereTheLengthIsNeeded) {
  EXPECT_FALSE(find_by_rule(draw_convolution(2000, 1000), "padded-length"));
  EXPECT_FALSE(find_by_rule(draw_convolution(4000, 3000), "padded-length"));
  EXPECT_FALSE(find_by_rule(draw_convolution(4000, 1000, "aten::sum"), "padded-length"));
}

}  // namespace
}  // namespace lanescope::explain
