#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// 100 us of `op`, then `call` of 5 us and 45 us without events, then 50 us of another operator.
Trace waiting(const char* call) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step().cpu_op("aten::mm", 100).cpu_op(call, 5).pass(45).cpu_op("aten::add", 50).end();
  return program.trace();
}

TEST(BarriersTest, CountsUntilTheNextOperator) {
  const auto finding = find_by_rule(waiting("c10d::barrier"), "barriers");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->verdict.pattern.find("once per step"), std::string::npos);
  EXPECT_EQ(finding->at_stake_ns, us(50));
}

TEST(BarriersTest, IsQuietAboutCollectives) {
  EXPECT_FALSE(find_by_rule(waiting("c10d::allreduce_"), "barriers"));
}

}  // namespace
}  // namespace lanescope::explain
