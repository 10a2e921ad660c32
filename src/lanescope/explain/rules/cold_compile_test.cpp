#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_compiled_test.h"

namespace lanescope::explain {
namespace {

TEST(ColdCompileTest, TheFirstStepsCompilingIsAColdStart) {
  EXPECT_FALSE(find_by_rule(compiling_in(1).trace(), "recompiles"));
  const auto finding = find_by_rule(compiling_in(1).trace(), "cold-compile");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
  EXPECT_EQ(finding->at_stake_ns, 3'000'000);
}

}  // namespace
}  // namespace lanescope::explain
