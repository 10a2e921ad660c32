#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

ProgramSketch with_final_sync(std::int64_t us) {
  ProgramSketch program = loop(3, 4, {.us = 5});
  program.call("cudaDeviceSynchronize", us);
  return program;
}

TEST(FinalSyncTest, SaysThatItIsNormal) {
  const auto finding = find_by_rule(with_final_sync(1780).trace(), "final-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
}

TEST(FinalSyncTest, IsQuietWhenLaunchesFollowOrItIsShort) {
  ProgramSketch program = with_final_sync(1780);
  program.launch({});
  EXPECT_FALSE(find_by_rule(program.trace(), "final-sync"));
  EXPECT_FALSE(find_by_rule(with_final_sync(20).trace(), "final-sync"));
}

// A wait's own record (cuda_sync) is joined to the call by its correlation id and is no launch: the
// last synchronize ends the recording, and the recording does not begin with a query of an event.
TEST(FinalSyncTest, TheRecordOfAWaitIsNoLaunch) {
  const auto recording = [](bool with_records) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) program.launch({.us = 500});
    const std::int64_t start = program.cpu_us();
    program.sketch().runtime("cudaDeviceSynchronize", us(start), us(2500), {.correlation = 900});
    program.sketch().runtime("cudaEventQuery", us(900), us(5), {.correlation = 901});
    if (with_records) {
      program.sketch().slice("cuda_sync", "Context Sync", us(start + 1), us(2499),
                             {.stream = 7, .correlation = 900});
      program.sketch().slice("cuda_sync", "Event Sync", us(902), us(2),
                             {.stream = 7, .correlation = 901});
    }
    return program.trace();
  };
  for (const bool with_records : {false, true}) {
    const Trace trace = recording(with_records);
    EXPECT_FALSE(find_by_rule(trace, "host-sync")) << with_records;
    EXPECT_TRUE(find_by_rule(trace, "final-sync")) << with_records;
    // From the first launch call (1003 us) to the last work: 12 us later 4 x 500 us.
    EXPECT_EQ(gather_facts(trace)->wall.partition.wall_ns, us(2006)) << with_records;
  }
}

TEST(FinalSyncTest, KnowsTheDriversWaitForTheDevice) {
  ProgramSketch program = loop(3, 4, {.us = 5});
  program.call("cuCtxSynchronize", 1780);
  EXPECT_TRUE(find_by_rule(program.trace(), "final-sync"));
}

}  // namespace
}  // namespace lanescope::explain
