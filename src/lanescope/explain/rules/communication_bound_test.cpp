#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

ProgramSketch with_collective(std::int64_t collective_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 5; ++k) program.launch({.us = 40});
    program.launch({.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", .us = collective_us});
    program.end();
  }
  return program;
}

// 200 us of compute and 100 us of an all-reduce on the same stream.
TEST(CommunicationBoundTest, SpeaksWhenACollectiveIsExposed) {
  const auto finding = find_by_rule(with_collective(100).trace(), "communication-bound");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 100'000);
}

// 100 us of compute and 100 us of communication, then a pause.
Trace with_idle(std::int64_t pause_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step()
        .launch({.us = 100})
        .launch({.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", .us = 100})
        .wait("cudaDeviceSynchronize")
        .pass(pause_us)
        .end();
  return program.trace();
}

TEST(CommunicationBoundTest, IsACostWhereTheGpuIsIdleForMuchLonger) {
  const auto bound = find_by_rule(with_idle(50), "communication-bound");
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->kind, FindingKind::kBound);
  const auto cost = find_by_rule(with_idle(300), "communication-bound");
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->kind, FindingKind::kCost);
  EXPECT_EQ(cost->at_stake_ns, 100'000);
  EXPECT_THAT(cost->verdict.pattern, ::testing::HasSubstr("was idle for longer"));
}

std::vector<std::string> bounds_of(const Trace& trace) {
  const auto facts = gather_facts(trace);
  const auto explanation = run_rules(*facts);
  std::vector<std::string> bounds;
  for (const Finding& finding : explanation->findings)
    if (finding.kind == FindingKind::kBound) bounds.push_back(finding.rule);
  return bounds;
}

// 200 us of compute in every step. With 50 us of communication it is 80 % of the wall; with 100 us
// two thirds, too little; with 300 us communication is 60 %.
TEST(CommunicationBoundTest, ComputeOrCommunicationIsTheLimitNeverBoth) {
  const auto cost = find_by_rule(with_collective(50).trace(), "communication-bound");
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->kind, FindingKind::kCost);
  EXPECT_THAT(cost->verdict.pattern, ::testing::HasSubstr("computed for longer"));
  EXPECT_NEAR(cost->verdict.values.back().real, 0.8, 0.02);
  EXPECT_THAT(bounds_of(with_collective(50).trace()), ::testing::ElementsAre("gpu-bound"));
  for (const std::int64_t collective_us : {100, 300})
    EXPECT_THAT(bounds_of(with_collective(collective_us).trace()),
                ::testing::ElementsAre("communication-bound"))
        << collective_us;
}

// The GPU waits 19 us longer than the pause. With a pause of 70 us that is 31 % of the step's 289,
// enough to be host-bound, but communication takes longer: 100.
TEST(CommunicationBoundTest, TheCpuOrCommunicationIsTheLimitNeverBoth) {
  EXPECT_THAT(bounds_of(with_idle(70)), ::testing::ElementsAre("communication-bound"));
  EXPECT_FALSE(find_by_rule(with_idle(70), "host-bound"));
  EXPECT_THAT(bounds_of(with_idle(100)), ::testing::ElementsAre("host-bound"));
}

// A step of 300 us of compute, 80 of communication, and 109 in which the GPU waits for the CPU.
TEST(CommunicationBoundTest, IsACostWhereTheGpuWaitsLongerForTheCpu) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step()
        .launch({.us = 300})
        .launch({.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", .us = 80})
        .wait("cudaDeviceSynchronize")
        .pass(90)
        .end();
  const auto finding = find_by_rule(program.trace(), "communication-bound");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
}

TEST(CommunicationBoundTest, IsQuietWhenItIsShort) {
  EXPECT_FALSE(find_by_rule(with_collective(20).trace(), "communication-bound"));
}

}  // namespace
}  // namespace lanescope::explain
