#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Steps of two micro batches: a forward pass and 1 ms of GPU work each. After each one Gloo's thread 101 runs a collective of
// 800 us, in which the main thread does nothing, or launches all the time.
Trace with_gloo(bool is_busy, std::int64_t collectives_of_step = 2) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (std::int64_t k = 0; k < 2; ++k) {
      program.begin("DistributedDataParallel.forward").launch({.us = 1000}).end().wait();
      if (k >= collectives_of_step) continue;
      program.sketch().annotation("gloo:all_reduce", ProgramSketch::at(program.cpu_us()), us(800),
                                  {.tid = 101});
      if (is_busy)
        program.cpu_op("aten::mul", 800);
      else
        program.pass(800);
    }
    program.end();
  }
  return program.trace();
}

TEST(HostCollectivesTest, TellsToSendGradientsOfMicroBatchesOnce) {
  const Trace trace = with_gloo(false);
  const auto finding = find_by_rule(trace, "host-collectives");
  ASSERT_TRUE(finding);
  // Twice 800 us, less the microsecond in which the wait's operator ends. The second one stays with no_sync().
  EXPECT_NEAR(static_cast<double>(finding->verdict.values.at(0).integer), 1'600'000, 10'000);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 800'000, 10'000);
  EXPECT_EQ(finding->brief.values.at(1).integer, 2);
  EXPECT_NE(finding->action.pattern.find("no_sync()"), std::string::npos);
  const auto facts = gather_facts(trace);
  const auto explanation = run_rules(*facts);
  EXPECT_NE(explanation->headline.pattern.find("runs collectives on the CPU"), std::string::npos);
  for (const RuleRun& run : explanation->runs)
    if (std::string(run.id) == "python-hole") {
      EXPECT_EQ(run.state, RuleRun::State::kCovered);
    }
}

// One collective a step is no loop of sends; where the program works meanwhile, the GPU does not wait for it.
TEST(HostCollectivesTest, OneSendPerStepNeedsNoNoSyncAndWorkMeanwhileIsNoWait) {
  const auto once = find_by_rule(with_gloo(false, 1), "host-collectives");
  ASSERT_TRUE(once);
  EXPECT_EQ(once->action.pattern.find("no_sync()"), std::string::npos);
  EXPECT_FALSE(find_by_rule(with_gloo(true), "host-collectives"));
}

}  // namespace
}  // namespace lanescope::explain
