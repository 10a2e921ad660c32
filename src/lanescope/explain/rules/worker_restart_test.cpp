#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Two epochs of five batches: a wait of 100 us each; then one without a batch (3 ms), `start_us` of
// nothing, and the first wait of the next epoch (2 ms).
ProgramSketch epochs(std::int64_t start_us, bool evaluates, std::string_view iterator) {
  const std::string wait = "enumerate(DataLoader)#" + std::string(iterator) + ".__next__";
  ProgramSketch program;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int i = 0; i < 5; ++i) {
      program.step().begin(wait).pass(epoch == 1 && i == 0 ? 2000 : 100).end();
      program.launch({.us = 50}).end();
    }
    program.begin(wait).pass(3000).end();
    if (evaluates) program.launch({.us = 50});
    program.pass(start_us);
  }
  return program;
}
constexpr char kWorkers[] = "_MultiProcessingDataLoaderIter";

// 3 + 10 + 2 ms; the last kernel of the epoch runs 9 us into it and 50 us long: 49 of them still
// left after the wait has begun.
TEST(WorkerRestartTest, SpeaksOfTwoWaitsWithNothingBetween) {
  const auto finding = find_by_rule(epochs(10'000, false, kWorkers).trace(), "worker-restart");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
  EXPECT_EQ(finding->verdict.values[1].integer, us(15'000));
  EXPECT_EQ(finding->at_stake_ns, us(15'000 - 49));
}

// Without a GPU: four epochs of three steps, between them 3 + 10 + 2 ms. The first step is start-up; all three restarts lie in the
// eleven steady steps, and their waits are not the loader's.
TEST(WorkerRestartTest, IsACostOfTheStepsWhereItRepeats) {
  const std::string wait = "enumerate(DataLoader)#" + std::string(kWorkers) + ".__next__";
  ProgramSketch program;
  for (int epoch = 0; epoch < 4; ++epoch)
    for (int i = 0; i < 3; ++i) {
      program.step();
      if (epoch > 0 && i == 0) program.begin(wait).pass(3000).end().pass(10'000);
      program.begin(wait).pass(epoch > 0 && i == 0 ? 2000 : 100).end().cpu_op("aten::mm", 5000);
      program.end();
    }
  const Trace trace = program.trace();
  const auto finding = find_by_rule(trace, "worker-restart");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);
  const auto facts = gather_facts(trace);
  ASSERT_TRUE(facts);
  EXPECT_EQ(finding->at_stake_ns, facts->per_step(3 * us(15'000)));
  EXPECT_FALSE(find_by_rule(trace, "dataloader-wait"));
}

// As above, and each epoch ends with a read of its loss on the GPU; then 10 ms without a row, after the draw of a seed or, as
// where the program saves a checkpoint, after another operator.
TEST(WorkerRestartTest, SeesTheDrawOfTheSeedAfterTheLossIsRead) {
  const auto restart = [](bool draws_seed) {
    const std::string wait = "enumerate(DataLoader)#" + std::string(kWorkers) + ".__next__";
    ProgramSketch program;
    for (int epoch = 0; epoch < 4; ++epoch)
      for (int i = 0; i < 3; ++i) {
        program.step();
        if (epoch > 0 && i == 0) {
          program.begin(wait).pass(3000).end().launch({.us = 5, .op = "aten::mean"}).wait();
          program.cpu_op("aten::empty", 5).cpu_op("aten::random_", 5);
          program.cpu_op(draws_seed ? "aten::item" : "aten::to", 5).pass(10'000);
          program.cpu_op("aten::randperm", 5);
        }
        program.begin(wait).pass(epoch > 0 && i == 0 ? 2000 : 100).end().launch({.us = 50});
        program.end();
      }
    return find_by_rule(program.trace(), "worker-restart");
  };
  const auto finding = restart(true);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);
  EXPECT_FALSE(restart(false));
}

// Two steps, each a pass over `batches` batches; the first is left out as start-up. The second starts workers for `start_us`.
Trace passes(int batches, std::int64_t start_us = 10'000) {
  const std::string wait = "enumerate(DataLoader)#" + std::string(kWorkers) + ".__next__";
  ProgramSketch program;
  for (int pass = 0; pass < 2; ++pass) {
    program.step().pass(start_us);
    for (int i = 0; i < batches; ++i) {
      program.begin(wait).pass(i == 0 ? 2000 : 100).end();
      program.launch({.us = 50});
    }
    program.begin(wait).pass(3000).end().end();
  }
  return program.trace();
}

// 3 + 10 + 2 ms, less the 49 us of the last kernel. Only one step is counted, but it holds a pass over all batches.
TEST(WorkerRestartTest, IsACostOfAStepThatIsAPassOverAllBatches) {
  const Trace trace = passes(5);
  const auto finding = find_by_rule(trace, "worker-restart");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->at_stake_ns, us(15'000 - 49));
  EXPECT_NE(finding->action.pattern.find("persistent_workers"), std::string::npos);
  // More workers would make it worse.
  EXPECT_FALSE(find_by_rule(trace, "dataloader-wait"));
}

TEST(WorkerRestartTest, HappensOnceInAStepOfFewBatches) {
  const auto finding = find_by_rule(passes(2, 40'000), "worker-restart");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
}

TEST(WorkerRestartTest, IsQuietWhenWorkersStayOrThereAreNone) {
  EXPECT_FALSE(find_by_rule(epochs(10'000, true, kWorkers).trace(), "worker-restart"));
  EXPECT_FALSE(find_by_rule(epochs(10'000, false, "_SingleProcessDataLoaderIter").trace(),
                            "worker-restart"));
}

}  // namespace
}  // namespace lanescope::explain
