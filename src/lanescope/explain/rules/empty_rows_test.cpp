#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields buffer_fields(std::string_view dims, std::string_view concrete = "") {
  return {.input_dims = std::string(dims), .concrete_inputs = std::string(concrete)};
}

struct DrawnCapacity {
  std::string_view zeros = R"(["", "[512, 32]", "", "", "", ""])";
  std::string_view written = "[[512, 32], [], [128], [128, 32]]";
  std::string_view product = "[[4, 128, 32], [4, 32, 64]]";
};

// A step on the CPU: zeros; rows written into them; a product of all rows, 100 us; gelu, 20 us; the rows are picked, 10 us; a sum.
Trace draw_capacity(const DrawnCapacity& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto call = [&](std::string_view op, const Fields& fields, std::int64_t length_us) {
      p.begin_op(op, fields).pass(length_us - 2).end();
    };
    call("aten::new_zeros", buffer_fields("[[128, 32], [], [], [], [], []]", drawn.zeros), 10);
    call("aten::index_copy_", buffer_fields(drawn.written), 10);
    call("aten::view", buffer_fields("[[512, 32], []]"), 4);
    call("aten::bmm", buffer_fields(drawn.product), 100);
    call("aten::gelu", buffer_fields("[[4, 128, 64], []]"), 20);
    call("aten::index_select", buffer_fields("[[512, 64], [], [128]]"), 10);
    call("aten::add", buffer_fields("[[128, 64], [128, 64], []]"), 10);
  });
  return program.trace();
}

// 384 of 512 rows are zeros: three quarters of 130 us.
TEST(EmptyRowsTest, CountsTheRowsThatStayZero) {
  const auto finding = find_by_rule(draw_capacity({}), "empty-rows");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(130) * 3 / 4);
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::bmm");
  EXPECT_EQ(finding->brief.values.at(1).integer, 512);
  EXPECT_EQ(finding->brief.values.at(2).integer, 128);
}

TEST(EmptyRowsTest, IsQuietIfTheRowsMayBeFilled) {
  const auto is_reported = [](const DrawnCapacity& drawn) {
    return find_by_rule(draw_capacity(drawn), "empty-rows").has_value();
  };
  EXPECT_FALSE(is_reported({.written = "[[512, 32], [], [400], [400, 32]]"}));  // most are
  EXPECT_FALSE(
      is_reported({.zeros = R"(["", "[64, 32]", "", "", "", ""])"}));     // another tensor of zeros
  EXPECT_FALSE(is_reported({.product = "[[4, 128, 48], [4, 48, 64]]"}));  // of another tensor
}

}  // namespace
}  // namespace lanescope::explain
