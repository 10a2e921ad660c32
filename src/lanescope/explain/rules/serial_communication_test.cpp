#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_collectives_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::ProgramSketch;

// 200 us of compute and 80 us of communication, one after the other, a step.
TEST(SerialCommunicationTest, SpeaksOfOneStream) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50}).launch(all_reduce(20, 1'000'000));
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "serial-communication");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.values[2].text, HasSubstr("the stream that computes"));
  EXPECT_EQ(finding->at_stake_ns, 80'000);
}

TEST(SerialCommunicationTest, SpeaksOfWaitsBetweenTwoStreams) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 3; ++k)
      program.launch({.us = 50}).wait("wait").launch(all_reduce(40, 1'000'000, 20)).wait("wait");
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "serial-communication");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.values[2].text, HasSubstr("stream of its own"));
}

TEST(SerialCommunicationTest, IsQuietWhenTheyOverlap) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50}).launch(all_reduce(40, 1'000'000, 20));
    program.end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "serial-communication"));
}

}  // namespace
}  // namespace lanescope::explain
