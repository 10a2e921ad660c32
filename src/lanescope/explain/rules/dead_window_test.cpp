#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

ProgramSketch with_lead(std::int64_t first_us, std::int64_t later_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step()
        .pass(1)
        .begin("matmul_add")
        .pass(i == 0 ? first_us : later_us)
        .launch({})
        .end()
        .end();
  return program;
}

TEST(DeadWindowTest, SpeaksOfTheFirstEntryOfARange) {
  const auto finding = find_by_rule(with_lead(228, 5).trace(), "dead-window");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 223'000);
  EXPECT_EQ(finding->once.values.at(0).text, "matmul_add");
  EXPECT_EQ(finding->once.values.at(1).integer, 228'000);
}

// The GPU has 9 ms of work when the range is entered for the first time.
TEST(DeadWindowTest, IsQuietWhenTheGpuIsBusyMeanwhile) {
  ProgramSketch program;
  program.launch({.us = 9000});
  for (int i = 0; i < 4; ++i) program.begin("load").pass(i == 0 ? 900 : 5).launch({.us = 5}).end();
  EXPECT_FALSE(find_by_rule(program.trace(), "dead-window"));
}

TEST(DeadWindowTest, IsQuietWhenEveryEntryTakesAsLong) {
  EXPECT_FALSE(find_by_rule(with_lead(228, 200).trace(), "dead-window"));
}

}  // namespace
}  // namespace lanescope::explain
