#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// `calls` operators of 12 us; inside each the detour takes 10 us, of which the operator itself takes 4.
Trace detours(int calls, const char* around) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < calls; ++i)
      p.begin_op("aten::mm").begin_op(around).pass(2).cpu_op("aten::mm", 4).pass(2).end().end();
  });
  return program.trace();
}

// 2 + 2 us, and 1 us of the detour's own before and after.
TEST(DispatchModeTest, CountsWhatIsNotTheOperators) {
  const auto finding = find_by_rule(detours(20, "PythonDispatchMode"), "dispatch-mode");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 20);
  EXPECT_EQ(finding->at_stake_ns, us(20 * 6));
}

TEST(DispatchModeTest, IsQuietAboutAFewOrOthers) {
  EXPECT_FALSE(find_by_rule(detours(19, "PythonDispatchMode"), "dispatch-mode"));
  EXPECT_FALSE(find_by_rule(detours(20, "aten::mm_out"), "dispatch-mode"));
}

}  // namespace
}  // namespace lanescope::explain
