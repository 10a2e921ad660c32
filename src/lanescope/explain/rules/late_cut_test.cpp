#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields row_fields(std::string_view dims, std::string_view types, std::string_view concrete = "") {
  return {.input_dims = std::string(dims),
          .input_types = std::string(types),
          .concrete_inputs = std::string(concrete)};
}

struct DrawnHops {
  int layers = 2;
  std::string_view kept = "64";          // of 4096 rows
  std::string_view read = "[[64, 32]]";  // by what follows the cut
  bool is_read_later = false;            // all rows, after the cut
  bool has_edges = true;
  bool is_summed_before = false;  // over all rows
  std::string_view added_to = "[[4096, 32], [], [8192], [8192, 32], []]";
};

// A step on the CPU. Each layer: rows are picked, 100 us, and added into 4,096 rows, 200 us; a product, 300 us; relu, 50 us.
// Then a cut, 2 us, and a square of what it keeps.
Trace draw_hops(const DrawnHops& drawn) {
  constexpr std::string_view kFloats = R"(["float", "float", "float"])";
  constexpr std::string_view kPicked = R"(["float", "Scalar", "long int"])";
  constexpr std::string_view kAdded = R"(["float", "Scalar", "long int", "float", "Scalar"])";
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto call = [&](std::string_view op, const Fields& fields, std::int64_t length_us) {
      p.begin_op(op, fields).pass(length_us - 2).end();
    };
    call("aten::cos", row_fields("[[7, 7]]", R"(["float"])"), 10);
    for (int layer = 0; layer < drawn.layers; ++layer) {
      if (drawn.has_edges) {
        call("aten::index_select",
             row_fields("[[4096, 32], [], [8192]]", kPicked, R"(["", "0", ""])"), 100);
        call("aten::index_add_", row_fields(drawn.added_to, kAdded, R"(["", "0", "", "", "1"])"),
             200);
      }
      call("aten::linear", row_fields("[[4096, 32], [32, 32], [32]]", kFloats), 300);
      call("aten::relu", row_fields("[[4096, 32]]", R"(["float"])"), 50);
    }
    if (drawn.is_summed_before)
      call("aten::sum",
           row_fields("[[4096, 32], [], [], []]", kAdded, R"(["", "[0]", "False", ""])"), 10);
    call("aten::slice",
         row_fields("[[4096, 32], [], [], [], []]",
                    R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])",
                    R"(["", "0", "0", ")" + std::string(drawn.kept) + R"(", "1"])"),
         2);
    call("aten::square", row_fields(drawn.read, R"(["float"])"), 10);
    if (drawn.is_read_later) call("aten::mean", row_fields("[[4096, 32]]", R"(["float"])"), 10);
  });
  return program.trace();
}

// Of the last layer's rows 1 / 64 are needed. Each takes 8192 / 4096 others, so of the first layer's 3 / 64.
TEST(LateCutTest, CountsTheRowsThatNoLaterLayerReads) {
  const auto finding = find_by_rule(draw_hops({}), "late-cut");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns),
              static_cast<double>(us(650)) * (63.0 / 64 + 61.0 / 64), 2.0);
  EXPECT_EQ(finding->brief.values.at(0).integer, 4096);
  EXPECT_EQ(finding->brief.values.at(1).integer, 64);
  EXPECT_TRUE(finding->gain_is_bound);
}

TEST(LateCutTest, IsQuietIfTheRowsMayBeRead) {
  const auto is_reported = [](const DrawnHops& drawn) {
    return find_by_rule(draw_hops(drawn), "late-cut").has_value();
  };
  EXPECT_FALSE(is_reported({.kept = "2048", .read = "[[2048, 32]]"}));  // half of them are
  EXPECT_FALSE(is_reported({.read = "[[3, 3]]"}));  // the cut may only be returned
  EXPECT_FALSE(is_reported({.is_read_later = true}));
  EXPECT_FALSE(is_reported({.is_summed_before = true}));
  EXPECT_FALSE(is_reported({.has_edges = false}));  // words of a text, perhaps
  // Each layer already makes fewer rows than it reads.
  EXPECT_FALSE(is_reported({.added_to = "[[1024, 32], [], [8192], [8192, 32], []]"}));
}

}  // namespace
}  // namespace lanescope::explain
