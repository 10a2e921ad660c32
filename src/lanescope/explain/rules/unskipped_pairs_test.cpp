#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

constexpr char kHeads[] = "[4, 16, 2048, 64]";

void draw_part(ProgramSketch& p, const char* op, const char* diagonal) {
  Fields inputs = shapes("[[2048, 2048], []]", R"(["bool", "Scalar"])");
  inputs.concrete_inputs = R"(["", ")" + std::string(diagonal) + R"("])";
  p.begin_op(op, inputs).end();
}

void draw_mask_op(ProgramSketch& p, const char* op) {
  p.begin_op(op, shapes("[[2048, 2048], [2048, 2048]]", R"(["bool", "bool"])")).end();
}

// A forward pass of cuDNN's attention of 250 us.
void draw_masked(ProgramSketch& p, const std::string& mask = "[2048, 2048]") {
  const std::string dims = "[" + std::string(kHeads) + ", " + kHeads + ", " + kHeads + ", " + mask;
  constexpr char kB[] = R"("c10::BFloat16", "c10::BFloat16", "c10::BFloat16")";
  p.begin_op("aten::scaled_dot_product_attention",
             shapes(dims + "]", "[" + std::string(kB) + R"(, "bool"])"));
  Fields inner =
      shapes(dims + ", [], [], []]",
             "[" + std::string(kB) + R"(, "c10::BFloat16", "Scalar", "Scalar", "Scalar"])");
  inner.concrete_inputs = R"(["", "", "", "", "True", "0.", "False"])";
  p.op("aten::_scaled_dot_product_cudnn_attention", inner, "cudnn_generated_sdpa_fprop", 250);
  p.end();
}

// Each position sees itself and the 127 before it: 128 * 2048 - 127 * 128 / 2 = 254,016 of 2048^2 pairs. Of 16 x 16 blocks, the 16 of the
// diagonal and the 15 next to it have one: 225 / 256 of 250 us are at stake.
TEST(UnskippedPairsTest, KnowsTheWindowThatTrilAndTriuMake) {
  const auto finding = find_in_steps("unskipped-pairs", [](ProgramSketch& p) {
    draw_part(p, "aten::tril", "0");
    draw_part(p, "aten::triu", "-127");
    draw_mask_op(p, "aten::__and__");
    draw_masked(p);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->at_stake_ns, 219'727);
  ASSERT_EQ(finding->brief.values.size(), 2u);
  EXPECT_EQ(finding->brief.values[0].integer, 2048);
  EXPECT_NEAR(finding->brief.values[1].real, 254'016.0 / (2048 * 2048), 1e-9);
  EXPECT_THAT(finding->action.pattern, ::testing::StartsWith("flex_attention"));
}

// The second layer takes the mask of the first. The other work is four times as long, so an unknown mask would be too little.
TEST(UnskippedPairsTest, KnowsAWindowThatIsMadeOnce) {
  const auto finding = find_in_steps("unskipped-pairs", [](ProgramSketch& p) {
    draw_part(p, "aten::tril", "0");
    draw_part(p, "aten::triu", "-127");
    draw_masked(p);
    draw_masked(p);
    p.kernel("gemm", 4000);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 2 * 219'727);
}

// An operator that inverts the mask, two windows, and a diagonal that is not recorded: half of the time, as of a causal mask.
TEST(UnskippedPairsTest, SaysNoWindowThatItDoesNotKnow) {
  const auto expect_unknown = [](const std::function<void(ProgramSketch&)>& body) {
    const auto finding = find_in_steps("unskipped-pairs", body);
    ASSERT_TRUE(finding);
    EXPECT_THAT(finding->action.pattern, ::testing::StartsWith("A causal mask"));
    EXPECT_EQ(finding->at_stake_ns % 125'000, 0);
  };
  expect_unknown([](ProgramSketch& p) { draw_masked(p); });
  expect_unknown([](ProgramSketch& p) {
    draw_part(p, "aten::tril", "0");
    draw_part(p, "aten::triu", "-127");
    draw_mask_op(p, "aten::__and__");
    draw_mask_op(p, "aten::bitwise_not");
    draw_masked(p);
  });
  expect_unknown([](ProgramSketch& p) {
    for (const char* lowest : {"-127", "-255"}) {
      draw_part(p, "aten::tril", "0");
      draw_part(p, "aten::triu", lowest);
      draw_masked(p);
    }
  });
  expect_unknown([](ProgramSketch& p) {
    draw_part(p, "aten::tril", "0");
    draw_part(p, "aten::triu", "");
    draw_masked(p);
  });
}

// A mask of padding has one row for all queries. An unknown mask must take a fifth of the step.
TEST(UnskippedPairsTest, IsQuietAboutPaddingAndAboutLittleTime) {
  EXPECT_FALSE(find_in_steps("unskipped-pairs",
                             [](ProgramSketch& p) { draw_masked(p, "[4, 1, 1, 2048]"); }));
  EXPECT_FALSE(find_in_steps("unskipped-pairs", [](ProgramSketch& p) {
    draw_masked(p);
    p.kernel("gemm", 1500);
  }));
}

}  // namespace
}  // namespace lanescope::explain
