#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Four steps of a product of 400 us and `checks` checks, each of two kernels of 5 us and a read that waits.
std::optional<Finding> find_checks(int checks, std::string_view look = "aten::isnan",
                                   std::string_view join = "aten::any", int calls_between = 0) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.op("aten::mm", {}, "gemm", 400);
    for (int i = 0; i < checks; ++i) {
      for (int k = 0; k < calls_between; ++k) p.op("aten::relu", {}, "relu", 2);
      p.op(look, {}, "ne", 5).op(join, {}, "reduce", 5).wait("aten::is_nonzero");
    }
  });
  return find_by_rule(program.trace(), "finite-checks");
}

// 16 x 10 us of work, and what the GPU is idle during these calls.
TEST(FiniteChecksTest, CountsAllThreeCallsOfACheck) {
  const auto finding = find_checks(16);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->spared_calls.size(), 3u * 16 * 3);
  EXPECT_GE(finding->at_stake_ns, us(160));
  EXPECT_LE(finding->at_stake_ns, us(16 * 20));
  EXPECT_EQ(finding->brief.values.at(0).integer, 16);  // in each step
}

// A few checks, a comparison, and a mask that stays on the GPU.
TEST(FiniteChecksTest, IsQuietAboutOtherReads) {
  EXPECT_FALSE(find_checks(15));
  EXPECT_FALSE(find_checks(16, "aten::gt"));
  EXPECT_FALSE(find_checks(16, "aten::isnan", "aten::sum"));
  // Activations: a layer lies between two checks.
  EXPECT_FALSE(find_checks(16, "aten::isnan", "aten::any", 1));
}

}  // namespace
}  // namespace lanescope::explain
