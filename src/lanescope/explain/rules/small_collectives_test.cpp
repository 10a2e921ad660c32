#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_collectives_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Steps of 10 gemms of 50 us and `calls` all-reduces of 10 us on the same stream.
ProgramSketch with_messages(int calls, std::int64_t elements) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) program.launch({.us = 50});
    for (int k = 0; k < calls; ++k) program.launch(all_reduce(10, elements));
    program.end();
  }
  return program;
}

TEST(SmallCollectivesTest, SpeaksOfManySmallMessages) {
  const auto finding = find_by_rule(with_messages(30, 1000).trace(), "small-collectives");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 30);  // a step
  EXPECT_EQ(finding->at_stake_ns, 300'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(2).integer, 4000);
}

// 512 x 512 weights and their 512 biases, 4 bytes each: 1,050,624 bytes, a bucket of DDP with a limit of 1 MiB.
TEST(SmallCollectivesTest, SpeaksOfTwentyBucketsOfOneMebibyte) {
  EXPECT_TRUE(find_by_rule(with_messages(20, 512 * 513).trace(), "small-collectives"));
  EXPECT_TRUE(find_by_rule(with_messages(20, (2 << 20) / 4 - 1).trace(), "small-collectives"));
}

// Thirty all-reduces a step of 10 us, of which every third waits 90 us for another rank: 10 x 90 us
// of a step are no latency.
TEST(SmallCollectivesTest, DoesNotCountWaitsForAnotherRank) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) program.launch({.us = 50});
    for (int k = 0; k < 30; ++k) program.launch(all_reduce(k % 3 == 0 ? 100 : 10, 1000));
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "small-collectives");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 300'000);
  EXPECT_EQ(finding->arithmetic.at(1).values.at(0).integer, 900'000);
}

TEST(SmallCollectivesTest, IsQuietWhenTheyAreLargeOrFewAndNotCheckedWithoutSizes) {
  EXPECT_FALSE(find_by_rule(with_messages(30, (2 << 20) / 4).trace(), "small-collectives"));
  EXPECT_FALSE(find_by_rule(with_messages(19, 1000).trace(), "small-collectives"));
  EXPECT_EQ(state_of_rule(with_messages(30, -1).trace(), "small-collectives"),
            RuleRun::State::kNotChecked);
  EXPECT_FALSE(find_by_rule(with_messages(0, 1).trace(), "small-collectives"));
}

}  // namespace
}  // namespace lanescope::explain
