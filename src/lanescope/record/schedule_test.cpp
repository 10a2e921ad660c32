#include "lanescope/record/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lanescope::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One letter a step: . NONE, w WARMUP, r RECORD, S RECORD_AND_SAVE.
std::string actions(const ScheduleOptions& options, std::int64_t steps) {
  const auto function = schedule(options);
  std::string text;
  for (std::int64_t step = 0; step < steps; ++step)
    text += ".wrS"[static_cast<int>((*function)(step))];
  return text;
}

TEST(ScheduleTest, OneCycleIsWaitThenWarmupThenActiveAndTheLastActiveStepSaves) {
  EXPECT_EQ(actions({.wait = 1, .warmup = 1, .active = 3}, 10), ".wrrS.wrrS");
}
TEST(ScheduleTest, AnActiveOfOneSavesAtOnce) {
  EXPECT_EQ(actions({.wait = 1, .active = 1}, 4), ".S.S");
}
TEST(ScheduleTest, NothingHappensAfterTheLastRepeat) {
  EXPECT_EQ(actions({.wait = 1, .warmup = 1, .active = 1, .repeat = 2}, 9), ".wS.wS...");
}
TEST(ScheduleTest, SkipFirstComesBeforeTheFirstCycle) {
  EXPECT_EQ(actions({.wait = 1, .warmup = 0, .active = 2, .skip_first = 3}, 9), "....rS.rS");
}
TEST(ScheduleTest, SkipFirstWaitLeavesOutTheWaitOfTheFirstCycleOnly) {
  EXPECT_EQ(
      actions({.wait = 2, .warmup = 1, .active = 1, .skip_first = 1, .skip_first_wait = 1}, 10),
      ".wS..wS..w");
}
TEST(ScheduleTest, SkipFirstWaitShortensTheLastRepeatAsTorchDoes) {
  // The shift by `wait` counts towards the number of cycles: 2 cycles of 4 steps end after 8
  // - 2 steps.
  EXPECT_EQ(actions({.wait = 2, .warmup = 1, .active = 1, .repeat = 2, .skip_first_wait = 1}, 8),
            "wS..wS..");
}
TEST(ScheduleTest, NegativeCountsAndNoActiveStepAreRefused) {
  for (const ScheduleOptions& bad :
       {ScheduleOptions{.wait = -1}, ScheduleOptions{.warmup = -1}, ScheduleOptions{.active = 0},
        ScheduleOptions{.repeat = -1}, ScheduleOptions{.skip_first = -1},
        ScheduleOptions{.skip_first_wait = -1}}) {
    const auto result = schedule(bad);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(result.error().message, HasSubstr("active >= 1"));
  }
}

using enum ProfilerAction;
using enum ProfilerTask;

std::vector<ProfilerTask> between(ProfilerAction from, ProfilerAction to) {
  const auto tasks = tasks_between(from, to);
  return {tasks.begin(), tasks.end()};
}

TEST(TransitionTest, FromNone) {
  EXPECT_THAT(between(kNone, kNone), IsEmpty());
  EXPECT_THAT(between(kNone, kWarmup), ElementsAre(kPrepare));
  EXPECT_THAT(between(kNone, kRecord), ElementsAre(kPrepare, kStart));
  EXPECT_THAT(between(kNone, kRecordAndSave), ElementsAre(kPrepare, kStart));
}
TEST(TransitionTest, FromWarmup) {
  EXPECT_THAT(between(kWarmup, kNone), ElementsAre(kWarnNoActive, kStart, kStop));
  EXPECT_THAT(between(kWarmup, kWarmup), IsEmpty());
  EXPECT_THAT(between(kWarmup, kRecord), ElementsAre(kStart));
  EXPECT_THAT(between(kWarmup, kRecordAndSave), ElementsAre(kStart));
}
TEST(TransitionTest, FromRecord) {
  EXPECT_THAT(between(kRecord, kNone), ElementsAre(kWarnIncorrect, kStop));
  EXPECT_THAT(between(kRecord, kWarmup), ElementsAre(kWarnIncorrect, kStop));
  EXPECT_THAT(between(kRecord, kRecord), IsEmpty());
  EXPECT_THAT(between(kRecord, kRecordAndSave), IsEmpty());
}
TEST(TransitionTest, FromRecordAndSave) {
  EXPECT_THAT(between(kRecordAndSave, kNone), ElementsAre(kStop, kReady));
  EXPECT_THAT(between(kRecordAndSave, kWarmup), ElementsAre(kStop, kReady, kPrepare));
  EXPECT_THAT(between(kRecordAndSave, kRecord), ElementsAre(kStop, kReady, kPrepare, kStart));
  EXPECT_THAT(between(kRecordAndSave, kRecordAndSave),
              ElementsAre(kStop, kReady, kPrepare, kStart));
}
TEST(TransitionTest, AtTheEnd) {
  const auto at_end = [](ProfilerAction last) {
    const auto tasks = tasks_at_end(last);
    return std::vector<ProfilerTask>(tasks.begin(), tasks.end());
  };
  EXPECT_THAT(at_end(kNone), IsEmpty());
  EXPECT_THAT(at_end(kWarmup), ElementsAre(kStart, kStop));
  EXPECT_THAT(at_end(kRecord), ElementsAre(kStop, kReady));
  EXPECT_THAT(at_end(kRecordAndSave), ElementsAre(kStop, kReady));
}

}  // namespace
}  // namespace lanescope::record
