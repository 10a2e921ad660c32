#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_cpu_loop_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(DataloaderWaitTest, SpeaksWhenTheGpuIsIdleInNext) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    program.cpu_op("aten::stack", 200).end();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "dataloader-wait");
  ASSERT_TRUE(finding);
  EXPECT_GT(finding->at_stake_ratio, 0.05);
}

// torch 1.8 and older write the loader's ranges as operators.
TEST(DataloaderWaitTest, KnowsTheLoaderOfOldTraces) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().cpu_op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 200);
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "dataloader-wait");
  ASSERT_TRUE(finding);
  EXPECT_GT(finding->at_stake_ratio, 0.05);
}

TEST(DataloaderWaitTest, IsQuietWhenLoadingHidesBehindTheGpu) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    program.cpu_op("aten::stack", 100).end();
    for (int k = 0; k < 10; ++k) program.launch({.us = 50});
    program.end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "dataloader-wait"));
}

// Of 900 us a worker's hand-over would cost a large part.
TEST(DataloaderWaitTest, AdvisesWorkersForLongBatchesOnly) {
  const auto action = [](std::int64_t batch_us) {
    const auto finding =
        find_by_rule(draw_cpu_loop({.steps_us = {5'000, 5'000, 5'000}, .batch_us = batch_us}),
                     "dataloader-wait");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action(1'000).find("num_workers"), std::string::npos);
  EXPECT_NE(action(999).find("too short for workers"), std::string::npos);
}

TEST(DataloaderWaitTest, OnTheCpuSpeaksFromATwentiethOfTheStepsOn) {
  const auto finding = find_by_rule(
      draw_cpu_loop({.steps_us = {1'000, 1'000, 1'000}, .batch_us = 400}), "dataloader-wait");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 400 * kUs);
  EXPECT_DOUBLE_EQ(finding->at_stake_ratio, 0.4);
  EXPECT_FALSE(find_by_rule(draw_cpu_loop({.batch_us = 49}), "dataloader-wait"));
  EXPECT_TRUE(find_by_rule(draw_cpu_loop({.batch_us = 50}), "dataloader-wait"));
}

}  // namespace
}  // namespace lanescope::explain
