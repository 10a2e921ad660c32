#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnGuidance {
  bool has_pass_on_half = false;  // the same layer on the rows of one half
  bool is_mixed = true;           // a + s * (b - a)
  bool trains = false;
};

// A step on the CPU: two halves of 64 rows are joined, 10 us; a product of 128 rows, 400 us; the result is split, and mixed.
Trace draw_guidance(const DrawnGuidance& drawn) {
  constexpr std::string_view kFloats = R"(["float", "float", ""])";
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto call = [&](std::string_view op, std::string_view dims, std::string_view types,
                          std::int64_t length_us, std::string_view concrete = "") {
      p.begin_op(op, {.input_dims = std::string(dims),
                      .input_types = std::string(types),
                      .concrete_inputs = std::string(concrete)});
      p.pass(length_us - 2).end();
    };
    call("aten::cat", "[[[64, 32], [64, 32]], []]", R"(["TensorList", "Scalar"])", 10,
         R"(["", "0"])");
    call("aten::linear", "[[128, 32], [32, 32], []]", kFloats, 400);
    call("aten::chunk", "[[128, 32], [], []]", R"(["float", "Scalar", "Scalar"])", 4,
         R"(["", "2", "0"])");
    call("aten::sub", "[[64, 32], [64, 32], []]", kFloats, 10);
    if (drawn.is_mixed) call("aten::mul", "[[64, 32], []]", R"(["float", "double"])", 10);
    call("aten::add", "[[64, 32], [64, 32], []]", kFloats, 10);
    if (drawn.has_pass_on_half) call("aten::linear", "[[64, 32], [32, 32], []]", kFloats, 200);
    if (drawn.trains) p.begin_op("autograd::engine::evaluate_function: MmBackward0").pass(10).end();
  });
  return program.trace();
}

TEST(BlendedHalvesTest, AsksAboutHalfOfEachPass) {
  const auto finding = find_by_rule(draw_guidance({}), "blended-halves");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(410) / 2);
  EXPECT_EQ(finding->brief.values.at(0).integer, 128);
  EXPECT_TRUE(finding->gain_is_bound);
}

TEST(BlendedHalvesTest, IsQuietIfBothHalvesCountOrOneIsLeftOutAlready) {
  const auto is_reported = [](const DrawnGuidance& drawn) {
    return find_by_rule(draw_guidance(drawn), "blended-halves").has_value();
  };
  EXPECT_FALSE(is_reported({.has_pass_on_half = true}));
  EXPECT_FALSE(is_reported({.is_mixed = false}));
  EXPECT_FALSE(is_reported({.trains = true}));
}

}  // namespace
}  // namespace lanescope::explain
