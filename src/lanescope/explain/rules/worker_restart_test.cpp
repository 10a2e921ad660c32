#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/run_rules.h"

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

// Two steps, each an epoch in a range of its own, which reads its loss at the end and zeroes it at the start. Then 10 ms without
// a row, after the draw of a seed or after another operator.
Trace epochs_in_ranges(bool draws_seed, std::string_view done_before = {}) {
  const std::string wait = "enumerate(DataLoader)#" + std::string(kWorkers) + ".__next__";
  ProgramSketch program;
  for (int epoch = 0; epoch < 2; ++epoch) {
    program.step();
    if (!done_before.empty()) program.begin(done_before).cpu_op("aten::empty", 5).end();
    program.begin("epoch").launch({.us = 2, .op = "aten::zeros"}).cpu_op("aten::empty", 5);
    program.cpu_op("aten::random_", 5).cpu_op(draws_seed ? "aten::item" : "aten::to", 5);
    program.pass(10'000).cpu_op("aten::randperm", 200);
    for (int i = 0; i < 5; ++i)
      program.begin(wait).pass(i == 0 ? 2000 : 100).end().launch({.us = 50});
    program.begin(wait).pass(3000).end().wait("aten::item").end().end();
  }
  return program.trace();
}

TEST(WorkerRestartTest, SeesARestartInARangeThatHoldsTheEpoch) {
  const Trace trace = epochs_in_ranges(true);
  const auto finding = find_by_rule(trace, "worker-restart");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), static_cast<double>(us(15'000)), us(350));
  EXPECT_FALSE(find_by_rule(trace, "dataloader-wait"));
}

// Near misses: no seed is drawn; or a range ends between both waits: its work is not the loader's.
TEST(WorkerRestartTest, IsQuietAboutOtherWorkBeforeAnEpochInARange) {
  EXPECT_FALSE(find_by_rule(epochs_in_ranges(false), "worker-restart"));
  EXPECT_FALSE(find_by_rule(epochs_in_ranges(true, "save"), "worker-restart"));
}

TEST(WorkerRestartTest, HappensOnceInAStepOfFewBatches) {
  const auto finding = find_by_rule(passes(2, 40'000), "worker-restart");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
}

// Twelve steps, each a wait of 20 us and a kernel of 800 us; in step 6 an epoch ends: 3 + `start_us` + 2 ms. The wait after it
// takes `next_us`, and step 6 also holds `others` more kernels.
Trace one_restart(std::int64_t start_us, std::int64_t next_us, int others) {
  const std::string wait = "enumerate(DataLoader)#" + std::string(kWorkers) + ".__next__";
  ProgramSketch program;
  for (int i = 0; i < 12; ++i) {
    program.step();
    if (i == 6) program.begin(wait).pass(3000).end().pass(start_us);
    program.begin(wait).pass(i == 6 ? 2000 : i == 7 ? next_us : 20).end();
    for (int k = 0; k < (i == 6 ? 1 + others : 1); ++k) program.launch({.us = 800}).wait();
    program.end();
  }
  return program.trace();
}

std::vector<std::string> first_screen_rules(const Trace& trace) {
  const auto facts = gather_facts(trace);
  auto explanation = run_rules(*facts);
  std::vector<std::string> rules;
  for (const Suggestion& each : do_first(*facts, *explanation))
    rules.push_back(explanation->findings[each.finding].rule);
  return rules;
}

// 3 + 60 + 2 ms of step 6, and 4 ms in the wait after it.
TEST(WorkerRestartTest, IsToldOnceWhereItIsMostOfTheLongStep) {
  const Trace trace = one_restart(60'000, 4000, 0);
  const auto facts = gather_facts(trace);
  ASSERT_EQ(facts->selection.long_step, 6U);
  const auto rules = first_screen_rules(trace);
  ASSERT_FALSE(rules.empty());
  EXPECT_EQ(rules.front(), "worker-restart");
  for (const char* other : {"long-step", "dataloader-wait"})
    EXPECT_EQ(std::count(rules.begin(), rules.end(), other), 0) << other;
  const auto finding = find_by_rule(trace, "worker-restart");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->brief.pattern.find("most of step {}; {} per step"), std::string::npos);
  const std::int64_t mean_ns = finding->brief.values[3].integer;
  EXPECT_NEAR(static_cast<double>(mean_ns), static_cast<double>(us(69'000) / 11), us(20));
}

// Near miss: other work takes most of that step, so the step is told as well.
TEST(WorkerRestartTest, DoesNotExplainAStepThatIsMostlyOtherWork) {
  const Trace trace = one_restart(20'000, 20, 60);
  const auto finding = find_by_rule(trace, "worker-restart");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.pattern.find("most of step"), std::string::npos);
  const auto rules = first_screen_rules(trace);
  EXPECT_EQ(std::count(rules.begin(), rules.end(), "long-step"), 1);
}

TEST(WorkerRestartTest, IsQuietWhenWorkersStayOrThereAreNone) {
  EXPECT_FALSE(find_by_rule(epochs(10'000, true, kWorkers).trace(), "worker-restart"));
  EXPECT_FALSE(find_by_rule(epochs(10'000, false, "_SingleProcessDataLoaderIter").trace(),
                            "worker-restart"));
}

}  // namespace
}  // namespace lanescope::explain
