#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_compiled_test.h"

namespace lanescope::explain {
namespace {

// A step of 60 us, kernel [59, 64): then the GPU waits for the launch that ends at 117. Of these 53
// us 46 are the compiler's ([64, 110) of lookup, region and graph), the rest the operator's.
TEST(CompileOverheadTest, SpeaksWhenTheGpuWaitsForTheLayers) {
  const auto finding = find_by_rule(compiled_call(5).trace(), "compile-overhead");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 46'000);
}

TEST(CompileOverheadTest, LeavesBrokenCallsToGraphBreaks) {
  EXPECT_FALSE(find_by_rule(with_break(true).trace(), "compile-overhead"));
}

TEST(CompileOverheadTest, IsQuietWhenTheGpuIsBusy) {
  EXPECT_FALSE(find_by_rule(compiled_call(200).trace(), "compile-overhead"));
}

}  // namespace
}  // namespace lanescope::explain
