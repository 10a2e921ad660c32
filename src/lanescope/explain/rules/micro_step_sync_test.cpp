#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_collectives_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Three steps of `passes` backward passes. Each pass runs two nodes and sums two buckets; the
// optimizer steps `optimizers` times.
ProgramSketch with_passes(int passes, int optimizers, bool syncs_each, std::int64_t stream = 7) {
  ProgramSketch program;
  std::int64_t sequence = 0;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int pass = 0; pass < passes; ++pass) {
      sequence += 10;
      for (int node = 0; node < 2; ++node) {
        program.sketch().op("MmBackward0", ProgramSketch::at(program.cpu_us()), 12'000,
                            {.sequence = sequence - node, .fwd_thread = 1});
        program.launch({.us = 20}).pass(5);
        if (syncs_each || pass + 1 == passes)
          program.launch(all_reduce(10, 1000 * (node + 1), stream));
      }
    }
    for (int k = 0; k < optimizers; ++k)
      program.begin("Optimizer.step#SGD.step").launch({.us = 5, .op = "aten::add_"}).end();
    program.end();
  }
  return program;
}

// 4 passes x 2 all-reduces of 10 us, of which 6 a step are not needed.
TEST(MicroStepSyncTest, SpeaksWhenEachPassSums) {
  const auto finding = find_by_rule(with_passes(4, 1, true).trace(), "micro-step-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 4);
  EXPECT_EQ(finding->verdict.values[1].integer, 6);
  EXPECT_EQ(finding->verdict.values[2].integer, 8);
  EXPECT_EQ(finding->at_stake_ns, 60'000);
}

// Hidden all-reduces cost as well; by how much one trace cannot tell, at most their length.
TEST(MicroStepSyncTest, HiddenOnesAreAtStakeWhole) {
  const auto finding = find_by_rule(with_passes(4, 1, true, 20).trace(), "micro-step-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 60'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 60'000);
  EXPECT_LT(finding->arithmetic.at(0).values.at(1).integer, 60'000);
}

TEST(MicroStepSyncTest, IsQuietWithNoSyncOnePassOrTwoOptimizers) {
  EXPECT_FALSE(find_by_rule(with_passes(4, 1, false).trace(), "micro-step-sync"));
  EXPECT_FALSE(find_by_rule(with_passes(1, 1, true).trace(), "micro-step-sync"));
  EXPECT_FALSE(find_by_rule(with_passes(2, 2, true).trace(), "micro-step-sync"));  // two models
}

}  // namespace
}  // namespace lanescope::explain
