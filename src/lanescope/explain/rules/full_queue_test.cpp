#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::ProgramSketch;

// 1500 launches of 2 us against 10 us of work each; when 1000 wait, a call takes 50 us.
ProgramSketch with_full_queue(std::int64_t held_us) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) {
    program.step();
    for (int k = 0; k < 700; ++k)
      program.launch({.us = 100, .call_us = i == 2 && k > 0 ? held_us : 4});
    program.end();
  }
  return program;
}

// When the last step begins, 1400 launches were made in 14 ms, and 140 pieces of work had run.
TEST(FullQueueTest, SpeaksWhenCallsWaitForARoomInTheQueue) {
  const auto finding = find_by_rule(with_full_queue(100).trace(), "full-queue");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_FALSE(find_by_rule(with_full_queue(100).trace(), "slow-launches"));
}

// 1200 launches of 1 us before the steps, and a queue that stays full in all of them: 100 us of
// work after each call of 100 us.
TEST(FullQueueTest, SpeaksWhenNoCallFoundRoom) {
  ProgramSketch program;
  program.step();
  for (int k = 0; k < 1200; ++k) program.launch({.us = 100, .call_us = 1});
  program.end();
  for (int i = 0; i < 3; ++i) {
    program.step();
    for (int k = 0; k < 20; ++k) program.launch({.us = 100, .call_us = 100});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "full-queue");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 60);
  EXPECT_THAT(finding->arithmetic.at(0).pattern, HasSubstr("no call of the steady steps"));
}

TEST(FullQueueTest, IsQuietWhenCallsAreQuickOrTheQueueHasRoom) {
  EXPECT_FALSE(find_by_rule(with_full_queue(4).trace(), "full-queue"));
  EXPECT_FALSE(find_by_rule(loop(3, 60, {.us = 100, .call_us = 100}).trace(), "full-queue"));
}

}  // namespace
}  // namespace lanescope::explain
