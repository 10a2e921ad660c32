#include <gtest/gtest.h>

#include "lanescope/explain/rules/drawn_lock_test.h"

namespace lanescope::explain {
namespace {

TEST(GarbageCollectionTest, CollectsDuringTheSteps) {
  const Trace trace = draw_lock(
      {{.self = 2000}, {.function = "train.py(9): batch", .self = 1000, .collecting = 300}});
  const auto finding = find_by_rule(trace, "garbage-collection");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->verdict.values.at(0).real, 0.1, 0.001);  // 300 of 3000
  EXPECT_NEAR(finding->at_stake_ratio, 0.1, 0.001);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(3).text, "train.py(9): batch");
}

TEST(GarbageCollectionTest, IsQuietWhenItTakesLittle) {
  EXPECT_EQ(state_of_rule(draw_lock({{.self = 3000, .collecting = 60}}), "garbage-collection"),
            RuleRun::State::kQuiet);
}

}  // namespace
}  // namespace lanescope::explain
