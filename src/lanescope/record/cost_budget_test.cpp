#include "lanescope/record/cost_budget.h"

#include <gmock/gmock.h>

#include "lanescope/record/cost_budget_helpers_test.h"

namespace lanescope::record {
namespace {

using ::testing::HasSubstr;

TEST(CostBudgetTest, WhatFitsStaysWhole) {
  Program program(0.01);
  program.calls_per_s = 30'000;  // 300 ns each: 0.9 %
  program.run(60'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
  EXPECT_TRUE(program.budget.periods().empty());
  EXPECT_EQ(program.budget.thinned_json(), "[]");
  EXPECT_NEAR(program.budget.share(), 0.009, 1e-6);
}

TEST(CostBudgetTest, InputsGoFirstThenStacks) {
  Program program(0.01);
  program.calls_per_s = 60'000;  // 1.8 %, without shapes 1.2 %, without stacks 0.6 %
  program.run(125);              // 0.8 % of it, 1 ms, is beyond the budget
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
  program.run(1);
  EXPECT_EQ(program.budget.thinning(), Thinning::kInputs);
  program.run(250);  // 0.2 % of it: 0.5 ms more
  EXPECT_EQ(program.budget.thinning(), Thinning::kInputs);
  program.run(1);
  EXPECT_EQ(program.budget.thinning(), Thinning::kStacks);
  program.run(60'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kStacks);
  EXPECT_EQ(program.paused_ns, 0);
  ASSERT_EQ(program.budget.periods().size(), 2u);
  EXPECT_EQ(program.budget.periods()[0].from_ns, kWall + 126 * kMs);
  EXPECT_EQ(program.budget.periods()[0].to_ns, kWall + 377 * kMs);
  EXPECT_NEAR(program.budget.periods()[0].share_ratio, 0.018, 1e-6);
  EXPECT_FALSE(program.budget.periods()[1].to_ns);
  EXPECT_NEAR(program.budget.periods()[1].share_ratio, 0.012, 1e-6);
}

TEST(CostBudgetTest, WhatIsNotRecordedCannotGo) {
  Program program(0.01, false, true);
  program.inputs_ns = 0;
  program.calls_per_s = 60'000;  // 1.2 %, 0.6 %
  program.run(20'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kStacks);
  EXPECT_EQ(program.level_changes, 1);
}

TEST(CostBudgetTest, FarAboveTheBudgetLevelsGoWithinMilliseconds) {
  Program program(0.01);
  program.calls_per_s = 1'000'000;  // 30, 20, 10 %
  program.run(3);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
  program.run(1);  // 4 * 0.29 ms: more than 1 ms of debt
  EXPECT_EQ(program.budget.thinning(), Thinning::kInputs);
  program.run(3);  // 3 * 0.19 ms: this level added more than 0.5 ms
  EXPECT_EQ(program.budget.thinning(), Thinning::kStacks);
  program.run(6);  // 6 * 0.09 ms
  EXPECT_EQ(program.budget.thinning(), Thinning::kShortOperators);
  program.run(3);  // 1.16 + 0.57 + 0.54 + 0.27: more than 2.5 ms
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  EXPECT_TRUE(program.budget.is_paused());
  EXPECT_EQ(program.sum.cost_ns, 27 * kMs / 10);  // 4 * 0.3 + 3 * 0.2 + 9 * 0.1
  // The debt of 2.54 ms and the 2.5 ms of the start are paid and 1 ms saved after 604 ms.
  program.run(603);
  EXPECT_TRUE(program.budget.is_paused());
  program.run(1);
  EXPECT_FALSE(program.budget.is_paused());
}

// What is promised in cost_budget.h, looked at after each millisecond.
TEST(CostBudgetTest, TheCostSinceTheStartIsTheBudgetAndTheStatedDebtAtMost) {
  for (const double ratio : {0.001, 0.01, 0.1}) {
    const double debt_ns = std::max(ratio * 0.25e9, 2.5e6);
    for (const double calls_per_s : {10e3, 40e3, 60e3, 100e3, 300e3, 1e6, 2e6, 3e6}) {
      Program program(ratio);
      program.calls_per_s = calls_per_s;  // 300 ns each: 0.3 % to 90 %
      const double one_look_ns = calls_per_s * 1e-3 * 300;
      while (program.now_ns < 12'000 * kMs) {
        program.run(1);
        ASSERT_LE(static_cast<double>(program.sum.total_ns()),
                  ratio * static_cast<double>(program.now_ns) + debt_ns + one_look_ns)
            << ratio << " " << calls_per_s << " " << program.now_ns / kMs << " ms";
      }
    }
  }
}

TEST(CostBudgetTest, RangesOfTheProgramMayAddTheBudgetOfAFifthOfASecond) {
  for (const double calls_per_s : {0.0, 60e3, 1e6})
    for (const double share : {0.006, 0.012, 0.05, 0.3}) {
      Program program(0.01);
      program.calls_per_s = calls_per_s;
      program.ranges_ns_per_s = share * 1e9;
      const double one_look_ns = calls_per_s * 1e-3 * 300 + share * 1e6;
      while (program.now_ns < 12'000 * kMs) {
        program.run(1);
        ASSERT_LE(static_cast<double>(program.sum.total_ns()),
                  0.01 * static_cast<double>(program.now_ns) + 2.5e6 + 2e6 + 3 * one_look_ns)
            << calls_per_s << " " << share << " " << program.now_ns / kMs << " ms";
      }
    }
}

TEST(CostBudgetTest, ATightLoopOfASecondCostsOnePercentAtMost) {
  Program program(0.01);
  program.calls_per_s = 2'000'000;  // 60, 40, 20 %
  program.run(1'000);
  EXPECT_LE(program.sum.total_ns(), 10 * kMs);
  EXPECT_GE(program.sum.total_ns(), 7 * kMs);  // and makes use of it; 2.5 ms are for the unseen
}

// What callbacks do not see of the start is paid by the first pause: 2.5 ms.
TEST(CostBudgetTest, TheFirstPauseAlsoPaysForTheUnseenStart) {
  Program program(0.01, false, false);
  program.inputs_ns = program.stack_ns = 0;
  program.calls_per_s = 2'000'000;  // 20 %
  while (!program.budget.is_paused()) program.run(1);
  while (program.budget.is_paused()) program.run(1);
  // 1 ms is saved for the part that begins now.
  EXPECT_NEAR(static_cast<double>(program.sum.total_ns()),
              0.01 * static_cast<double>(program.now_ns) - 3.5e6, 0.02e6);
  while (!program.budget.is_paused()) program.run(1);
  const std::int64_t began = program.now_ns, spent = program.sum.total_ns();
  while (program.budget.is_paused()) program.run(1);
  EXPECT_NEAR(static_cast<double>(spent), 0.01 * static_cast<double>(began) - 2.5e6, 0.2e6);
}

TEST(CostBudgetTest, APauseGoesOnInTheNextWindow) {
  Program program(0.01, false, false);
  program.calls_per_s = 2'000'000;
  program.run(100);
  ASSERT_TRUE(program.budget.is_paused());
  program.budget.close(program.now_ns, kWall + program.now_ns, program.sum);
  EXPECT_FALSE(program.budget.is_paused());
  program.budget.open(program.now_ns, kWall + program.now_ns, program.sum);
  EXPECT_TRUE(program.budget.is_paused());
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
}

// Each level spends more in a millisecond than the debt has room for.
TEST(CostBudgetTest, ALevelThatHadNoTimeBeginsAfterThePause) {
  Program program(0.01);
  program.step_ms = 10;
  program.calls_per_s = 2'000'000;  // 60, 40, 20 %
  program.run(10'000);
  std::vector<Thinning> levels;
  for (const auto& period : program.budget.periods()) levels.push_back(period.thinning);
  levels.resize(6);
  using enum Thinning;
  EXPECT_THAT(levels, ::testing::ElementsAre(kOperatorsInParts, kInputs, kOperatorsInParts, kStacks,
                                             kShortOperators, kOperatorsInParts));
  EXPECT_EQ(program.budget.short_ns(), 20'000);  // two calls of 100 ns, 1 %
  // What led to a level is the share before its pause.
  EXPECT_NEAR(program.budget.periods()[1].share_ratio, 0.6, 1e-6);
  EXPECT_NEAR(program.budget.periods()[3].share_ratio, 0.4, 1e-6);
}

TEST(CostBudgetTest, AfterTheFirstSecondAShortBurstIsNotTooMuch) {
  Program program(0.01);
  program.calls_per_s = 1'000;  // 0.03 %
  program.run(5'000);
  program.calls_per_s = 150'000;  // 4.5 %; without the budget 3.5 %: 1 % of 1 s after 286 ms
  program.run(200);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
  program.calls_per_s = 1'000;
  program.run(1'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
  program.calls_per_s = 150'000;
  program.run(400);
  EXPECT_EQ(program.budget.thinning(), Thinning::kInputs);
}

TEST(CostBudgetTest, ARecordingOfAnyLengthKeepsItsBudget) {
  for (const double calls_per_s : {100'000.0, 400'000.0, 2'000'000.0}) {  // 3, 12, 60 %
    Program program(0.01);
    program.calls_per_s = calls_per_s;
    for (const std::int64_t ms : {2'000, 4'000, 8'000, 60'000}) {
      program.run(ms - program.now_ns / kMs);
      EXPECT_LT(program.budget.share(), 0.0116) << ms << " " << calls_per_s;
    }
  }
}

TEST(CostBudgetTest, PausesKeepTheShareWhenNothingElseCanGo) {
  Program program(0.01);
  program.calls_per_s = 1'000'000;  // 30, 20, 10 %
  program.run(600'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  // Ten minutes at 1 % are 6 s; what was saved and spent ahead is 0.05 s at most.
  EXPECT_NEAR(program.budget.share(), 0.01, 0.0005);
  const CostBudget::Period& last = program.budget.periods().back();
  EXPECT_GT(last.pause_count, 50u);
  EXPECT_EQ(last.pauses.size(), last.pause_count);
  const std::int64_t open =
      last.pauses.back().to_ns ? 0 : kWall + program.now_ns - last.pauses.back().from_ns;
  EXPECT_EQ(last.paused_ns + open, program.paused_ns);
  EXPECT_EQ(program.level_changes, 4);
}

TEST(CostBudgetTest, ShortOperatorsGoBeforeOperatorsPause) {
  Program program(0.01, false, false);
  program.inputs_ns = program.stack_ns = 0;
  program.short_share = 0.6;
  program.calls_per_s = 200'000;  // 2 %, without short ones 0.8 %
  program.run(1'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kShortOperators);
  // Begin and end take 100 ns each: 1 % of 20 us.
  EXPECT_EQ(program.budget.short_ns(), 20'000);
  program.run(60'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kShortOperators);
  EXPECT_EQ(program.paused_ns, 0);
  EXPECT_THAT(program.budget.thinned_json(),
              HasSubstr(R"("level": 3, "what": "short operators", "share_ratio": 0.0200, )"
                        R"("shorter_than_ns": 20000})"));
  program.calls_per_s = 20'000;  // 0.2 % with all
  program.run(12'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
}

TEST(CostBudgetTest, WhatCountsAsShortHasBounds) {
  for (const double ns : {1.0, 1e6}) {
    Program program(0.5, false, false);
    program.inputs_ns = program.stack_ns = 0;
    program.plain_ns = ns;
    program.calls_per_s = 0.7e9 / ns;
    program.step_ms = 10;
    while (program.now_ns < 1'000 * kMs && program.budget.thinning() == Thinning::kNothing)
      program.run(10);
    ASSERT_EQ(program.budget.thinning(), Thinning::kShortOperators) << ns;
    EXPECT_EQ(program.budget.short_ns(),
              ns == 1.0 ? CostBudget::kLeastShort : CostBudget::kMostShort);
  }
}

// The parts cost more than the budget for ever, and recording without short operators would not.
TEST(CostBudgetTest, PausesEndWhenLeavingOutShortOperatorsIsEnough) {
  Program program(0.01, false, false);
  program.inputs_ns = program.stack_ns = 0;
  program.short_share = 0.6;
  program.calls_per_s = 500'000;  // 5 %, without short ones 2 %
  program.run(10'000);
  ASSERT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  program.calls_per_s = 110'000;  // 1.1 %, without short ones 0.44 %
  program.run(60'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kShortOperators);
  EXPECT_FALSE(program.budget.is_paused());
}

TEST(CostBudgetTest, DetailsComeBackWhenTheyFitWithAMargin) {
  Program program(0.01);
  program.calls_per_s = 60'000;
  program.run(10'000);
  ASSERT_EQ(program.budget.thinning(), Thinning::kStacks);
  program.calls_per_s = 29'000;  // with stacks 0.58 %, with shapes 0.87 %: above the margin
  program.run(60'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kInputs);
  program.calls_per_s = 15'000;  // 0.45 %
  program.run(1'900);            // 1 s of calm was enough the first time
  EXPECT_EQ(program.budget.thinning(), Thinning::kInputs);
  program.run(1'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
  EXPECT_TRUE(program.budget.periods().back().to_ns);
}

TEST(CostBudgetTest, WholeOperatorsComeBackAfterPauses) {
  Program program(0.01);
  program.calls_per_s = 1'000'000;
  program.run(60'000);
  ASSERT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  program.calls_per_s = 10'000;  // 0.1 %
  program.run(120'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
  EXPECT_FALSE(program.budget.is_paused());
}

TEST(CostBudgetTest, ALoadThatComesAndGoesSoonChangesTheLevelAtMostOnceInTenSeconds) {
  Program program(0.01);
  for (int second = 0; second < 300; ++second) {
    program.calls_per_s = second % 2 == 0 ? 60'000 : 1'000;
    program.run(1'000);
  }
  EXPECT_LE(program.level_changes, 30);
}

TEST(CostBudgetTest, ShortWindowsOfAScheduleAreJudgedTogether) {
  CostBudget budget(0.01, true, false);
  CostSum sum;
  std::int64_t now = 0;
  for (int window = 0; window < 60; ++window, now += 10'000 * kMs) {
    budget.open(now, kWall + now, sum);
    budget.update(now, kWall + now, sum);
    now += 20 * kMs;  // 2 % of it, without inputs 0.5 %
    sum.cost_ns += budget.thinning() == Thinning::kNothing ? kMs * 4 / 10 : kMs / 10;
    sum.calls += 1000;
    budget.close(now, kWall + now, sum);
  }
  EXPECT_EQ(budget.thinning(), Thinning::kInputs);
  EXPECT_EQ(budget.window_ns(), 1200 * kMs);
  for (const CostBudget::Period& period : budget.periods()) {
    ASSERT_TRUE(period.to_ns);
    EXPECT_LE(*period.to_ns - period.from_ns, 20 * kMs);
  }
}

TEST(CostBudgetTest, TheListStaysShortHoweverLongTheRecordingIs) {
  Program program(0.001);
  program.step_ms = 100;
  for (int minute = 0; minute < 60 * 24; ++minute) {
    program.calls_per_s = minute % 3 == 0 ? 1'000'000 : 100;
    program.run(60'000);
  }
  EXPECT_GT(program.level_changes, 200);
  EXPECT_LE(program.budget.periods().size(), CostBudget::kMostPeriods);
  EXPECT_LT(program.budget.thinned_json().size(), 40u * 1024);
  EXPECT_FALSE(program.budget.periods().back().to_ns);
}

TEST(CostBudgetTest, RangesOfTheProgramCountButStayWhileOperatorsAreEnoughToLeaveOut) {
  Program program(0.01, false, false);
  program.inputs_ns = program.stack_ns = 0;
  program.short_share = 1;
  program.calls_per_s = 60'000;       // 0.6 %
  program.ranges_ns_per_s = 0.006e9;  // 0.6 %
  program.run(60'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kShortOperators);
  EXPECT_NEAR(program.budget.share_of(program.budget.spent().ranges_ns), 0.006, 1e-6);
}

TEST(CostBudgetTest, RangesOfTheProgramPauseWhenTheyAloneAreTooMuch) {
  Program program(0.01, false, false);
  program.ranges_ns_per_s = 0.2e9;  // 20 %
  for (const std::int64_t ms : {2'000, 8'000, 60'000}) {
    program.run(ms - program.now_ns / kMs);
    EXPECT_LT(program.budget.share(), 0.0116) << ms;
  }
  EXPECT_EQ(program.budget.thinning(), Thinning::kRangesInParts);
  EXPECT_GT(program.paused_ns, 50'000 * kMs);
  EXPECT_THAT(program.budget.thinned_json(),
              HasSubstr(R"("level": 5, "what": "operators and ranges", )"));
  program.ranges_ns_per_s = 0.001e9;
  program.run(60'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
}

// 0.9 % for ranges would leave 0.1 % for operators: pauses of 35 s after parts of 10 ms.
TEST(CostBudgetTest, RangesPauseWhenTheyLeaveNothingForOperators) {
  Program program(0.01, false, false);
  program.calls_per_s = 1'000'000;  // 30 %
  program.ranges_ns_per_s = 0.009e9;
  program.run(209);
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  program.run(10);  // 0.2 s after the pause began, in the first 12 ms
  EXPECT_EQ(program.budget.thinning(), Thinning::kRangesInParts);
  program.run(60'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kRangesInParts);
  EXPECT_LT(program.budget.share(), 0.0101);
  EXPECT_GT(program.budget.share_of(program.budget.spent().cost_ns), 0.008);
}

TEST(CostBudgetTest, RangesBeyondTheBudgetPauseAfterTwoMilliseconds) {
  Program program(0.01, false, false);
  program.inputs_ns = program.stack_ns = 0;
  program.calls_per_s = 2'000'000;
  program.ranges_ns_per_s = 0.02e9;  // 2 %
  while (!program.budget.is_paused()) program.run(1);
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  program.run(100);
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  program.run(1);
  EXPECT_EQ(program.budget.thinning(), Thinning::kRangesInParts);
}

TEST(CostBudgetTest, RangesThatTakeLessThanHalfOfTheBudgetStay) {
  Program program(0.01, false, false);
  program.calls_per_s = 1'000'000;
  program.ranges_ns_per_s = 0.0045e9;
  program.run(60'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  EXPECT_LT(program.budget.share(), 0.0101);
}

// 3 % of the time: 2 % beyond the budget, so its 2 ms (the budget of 0.2 s) are spent after 100 ms.
TEST(CostBudgetTest, AllocationsThatAloneAreTooMuchEndForGood) {
  Program program(0.01, false, false, true);
  program.memory_ns_per_s = 0.03e9;
  program.calls_per_s = 5'000;  // 0.05 %
  program.run(100);
  EXPECT_FALSE(program.budget.memory_end_ns());
  program.run(1);
  EXPECT_EQ(program.budget.memory_end_ns(), kWall + 101 * kMs);
  EXPECT_TRUE(program.budget.has_left_out_anything());
  EXPECT_THAT(program.budget.thinned_json(),
              HasSubstr(R"({"from_ns": 1700000000101000000, "to_ns": null, "what": "allocations", )"
                        R"("share_ratio": 0.0300})"));
  program.run(60'000);
  EXPECT_EQ(program.budget.memory_end_ns(), kWall + 101 * kMs);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);  // operators fit without them
  EXPECT_LT(program.budget.share(), 0.002);
}

TEST(CostBudgetTest, AllocationsThatFitStayAndOperatorsGo) {
  Program program(0.01, false, false, true);
  program.memory_ns_per_s = 0.008e9;
  program.calls_per_s = 1'000'000;
  program.run(60'000);
  EXPECT_FALSE(program.budget.memory_end_ns());
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  EXPECT_LE(program.budget.share(), 0.0101);
}

// Operators and allocations at once: the cost is never more than the budget, its debt at the
// start, that of the allocations, and what the time between two looks costs.
TEST(CostBudgetTest, WithManyAllocationsTheBudgetIsKeptAtEveryMoment) {
  Program program(0.01, false, false, true);
  program.memory_ns_per_s = 0.1e9;
  program.calls_per_s = 1'000'000;
  for (int ms = 0; ms < 3'000; ++ms) {
    program.run(1);
    const auto cost = static_cast<double>(program.sum.total_ns());
    ASSERT_LE(cost, 0.01 * static_cast<double>(program.now_ns) + program.budget.debt_limit_ns() +
                        2e6 + 3 * 0.2e6)
        << ms;
  }
  EXPECT_TRUE(program.budget.memory_end_ns());
}

TEST(CostBudgetTest, TheListIsJson) {
  Program program(0.01, false, false);
  program.calls_per_s = 1'000'000;
  // 4 * 0.29 ms of debt, 6 * 0.09 ms of the next level and 2.5 ms of the start: paid, and 1 ms saved,
  // 520 ms later. That lasts 12 ms.
  program.run(640);
  EXPECT_EQ(program.budget.thinned_json(),
            R"([{"from_ns": 1700000000004000000, "to_ns": 1700000000010000000, "level": 3, )"
            R"("what": "short operators", "share_ratio": 0.3000, "shorter_than_ns": 60000}, )"
            R"({"from_ns": 1700000000010000000, "to_ns": null, "level": 4, "what": "operators", )"
            R"("share_ratio": 0.1000, "paused_ns": 520000000, "pause_count": 2, )"
            R"("pauses": [[1700000000010000000, 1700000000530000000], )"
            R"([1700000000542000000, null]]}])");
  EXPECT_THAT(program.budget.cost_json(), HasSubstr(R"("budget_ratio": 0.01, )"));
  EXPECT_THAT(program.budget.cost_json(), HasSubstr(R"("cost_ns": 3000000, )"));
}

}  // namespace
}  // namespace lanescope::record
