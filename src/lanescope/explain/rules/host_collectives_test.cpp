#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Steps of two micro batches: a forward pass and 1 ms of GPU work each. After each one Gloo's thread 101 runs a collective of
// 800 us, in which the main thread does nothing, or launches all the time.
Trace with_gloo(bool is_busy, std::int64_t collectives_of_step = 2, std::int64_t python_us = 0) {
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
      program.pass(python_us);
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
  EXPECT_NE(explanation->headline.pattern.find("ran collectives on the CPU"), std::string::npos);
  for (const RuleRun& run : explanation->runs)
    if (std::string(run.id) == "python-hole") {
      EXPECT_EQ(run.state, RuleRun::State::kCovered);
    }
}

// 1.6 of about 3.7 ms a step. With 4 ms of Python after each collective, the program waits longer for itself.
TEST(HostCollectivesTest, TheHeadlineNamesCommunicationWhereItIsMostOfTheWaiting) {
  const auto headline = [](std::int64_t python_us) {
    const Trace trace = with_gloo(false, 2, python_us);
    const auto facts = gather_facts(trace);
    return run_rules(*facts)->headline;
  };
  const Sentence alone = headline(0);
  EXPECT_TRUE(alone.pattern.starts_with("Communication-bound: of the {}")) << alone.pattern;
  EXPECT_NEAR(static_cast<double>(alone.values.at(1).integer), 1'600'000, 10'000);
  EXPECT_EQ(alone.values.at(3).text, "Gloo");
  // Said once.
  EXPECT_EQ(alone.pattern.find("The GPU is idle for"), std::string::npos);
  const Sentence with_python = headline(4000);
  EXPECT_TRUE(with_python.pattern.starts_with("CPU-bound")) << with_python.pattern;
  EXPECT_NE(with_python.pattern.find("runs collectives on the CPU"), std::string::npos);
}

// The loop is DistributedDataParallel's.
TEST(HostCollectivesTest, NamesFewerBytesForGradients) {
  const auto once = find_by_rule(with_gloo(false, 1), "host-collectives");
  ASSERT_TRUE(once);
  EXPECT_NE(once->action.pattern.find("bf16_compress_hook"), std::string::npos);
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
