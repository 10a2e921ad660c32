#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnDecoding {
  std::string_view query = "[8, 4, 1, 16]";
  std::string_view mask = "aten::where";  // empty: none
  std::string_view dims = "[[8], [], [8]]";
  std::string_view types = R"(["bool", "Scalar", "long int"])";
  bool trains = false;
};

// A step on the CPU: attention over caches of eight sequences, 400 us; a layer, 100 us; argmax, 20 us; the mask, 10 us.
Trace draw_decoding(const DrawnDecoding& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto call = [&](std::string_view op, std::string_view dims, std::string_view types,
                          std::int64_t length_us) {
      p.begin_op(op, {.input_dims = std::string(dims), .input_types = std::string(types)});
      p.pass(length_us - 2).end();
    };
    call("aten::scaled_dot_product_attention",
         "[" + std::string(drawn.query) + ", [8, 4, 512, 16], [8, 4, 512, 16]]",
         R"(["float", "float", "float"])", 400);
    call("aten::linear", "[[8, 64], [1000, 64]]", R"(["float", "float"])", 100);
    call("aten::argmax", "[[8, 1000], [], []]", R"(["float", "Scalar", "Scalar"])", 20);
    if (!drawn.mask.empty()) call(drawn.mask, drawn.dims, drawn.types, 10);
    if (drawn.trains) p.begin_op("autograd::engine::evaluate_function: MmBackward0").pass(10).end();
  });
  return program.trace();
}

// All rows but one may have ended: 400 us less an eighth.
TEST(EndedRowsTest, CountsAttentionOfRowsWhoseTokensAreReplaced) {
  const auto finding = find_by_rule(draw_decoding({}), "ended-rows");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(350));
  EXPECT_EQ(finding->brief.values.at(1).integer, 8);
  EXPECT_TRUE(finding->gain_is_bound);
  // tokens * unfinished + padding * (1 - unfinished)
  EXPECT_TRUE(find_by_rule(
      draw_decoding(
          {.mask = "aten::mul", .dims = "[[8], [8]]", .types = R"(["long int", "long int"])"}),
      "ended-rows"));
}

TEST(EndedRowsTest, IsQuietIfNoTokenIsReplacedOrNothingIsDecoded) {
  const auto is_reported = [](const DrawnDecoding& drawn) {
    return find_by_rule(draw_decoding(drawn), "ended-rows").has_value();
  };
  EXPECT_FALSE(is_reported({.mask = ""}));
  EXPECT_FALSE(is_reported({.dims = "[[4], [], [4]]"}));                   // other rows
  EXPECT_FALSE(is_reported({.types = R"(["bool", "Scalar", "float"])"}));  // no tokens
  EXPECT_FALSE(is_reported(
      {.mask = "aten::add", .dims = "[[8], [8]]", .types = R"(["long int", "long int"])"}));
  EXPECT_FALSE(is_reported({.query = "[8, 4, 512, 16]"}));  // a prefill
  EXPECT_FALSE(is_reported({.trains = true}));
}

}  // namespace
}  // namespace lanescope::explain
