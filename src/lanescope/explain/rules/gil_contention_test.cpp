#include <gtest/gtest.h>

#include "lanescope/explain/rules/drawn_lock_test.h"

namespace lanescope::explain {
namespace {

TEST(GilContentionTest, AnotherThreadHoldsTheLockWhileThreadsWait) {
  const Trace trace = draw_lock(
      {{.self = 3000, .others_waited = 900},
       {.thread = 8, .function = "load.py(7): unpack", .self = 2000, .others_waited = 1000},
       {.thread = 8, .function = "load.py(9): log", .self = 500, .others_waited = 200},
       {.thread = 9, .function = "other.py(1): f", .self = 3000, .others_waited = 300}});
  const auto finding = find_by_rule(trace, "gil-contention");
  ASSERT_TRUE(finding);
  // 1500 of 3000; what the launching thread held itself does not count.
  EXPECT_NEAR(finding->verdict.values.at(0).real, 0.5, 0.001);
  EXPECT_NEAR(finding->at_stake_ratio, 0.5, 0.001);
  ASSERT_EQ(finding->evidence.size(), 1u);
  const auto& values = finding->evidence[0].text.values;
  EXPECT_EQ(values.at(1).text, "8");
  EXPECT_EQ(values.at(3).text, "load.py(7): unpack");
  // 1200 and 1000 of the 30 ms, as much of them as the steady steps have of it.
  EXPECT_NEAR(static_cast<double>(values.at(2).integer) / static_cast<double>(values.at(0).integer),
              1000.0 / 1200, 0.01);
}

TEST(GilContentionTest, IsQuietBelowATenth) {
  EXPECT_EQ(
      state_of_rule(draw_lock({{.self = 3000}, {.thread = 8, .self = 3000, .others_waited = 290}}),
                    "gil-contention"),
      RuleRun::State::kQuiet);
  // 28 % of few samples.
  EXPECT_EQ(
      state_of_rule(draw_lock({{.self = 100}, {.thread = 8, .self = 100, .others_waited = 28}}),
                    "gil-contention"),
      RuleRun::State::kQuiet);
}

TEST(GilContentionTest, FewSamplesAndNoLockSayNothing) {
  EXPECT_EQ(state_of_rule(draw_lock({{.self = 20}, {.thread = 8, .self = 20, .others_waited = 20}}),
                          "gil-contention"),
            RuleRun::State::kNotChecked);
  testing::ProgramSketch program = loop(4, 2, {.us = 100}, 3000);
  EXPECT_EQ(state_of_rule(program.trace(), "gil-contention"), RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
