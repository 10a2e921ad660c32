#include "lanescope/record/cost_budget.h"

#include <gmock/gmock.h>

namespace lanescope::record {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kWall = 1'700'000'000'000'000'000;

// A program that makes `calls_per_s` calls, of which each costs what the thinning leaves of it. In
// a pause nothing is called.
struct Program {
  CostBudget budget;
  double inputs_ns = 100, stack_ns = 100, plain_ns = 100, calls_per_s = 0;
  double short_share = 0;  // of the plain cost: that of short operators
  std::int64_t now_ns = 0, paused_ns = 0;
  double ranges_ns_per_s = 0, memory_ns_per_s = 0, gpu_calls_ns_per_s = 0;  // goes on in a pause
  CostSum sum;
  int level_changes = 0;
  std::int64_t step_ms = 1;

  std::int64_t gpu_on_ns = 0;
  double most_beyond_ns = 0;  // of the cost, at any look

  explicit Program(double ratio, bool has_inputs = true, bool has_stacks = true,
                   bool has_memory = false, bool gpu_in_parts = false)
      : budget(ratio, has_inputs, has_stacks, has_memory, gpu_in_parts) {
    budget.open(0, kWall, sum);
  }
  // As ActiveRecorder does it. Its calls cost something only while CUPTI is there.
  void run_in_parts(std::int64_t ms) {
    for (const std::int64_t until = now_ns + ms * kMs; now_ns < until;) {
      now_ns += kMs;
      const GpuParts::State state = budget.gpu().state();
      const bool records = state == GpuParts::State::kWaiting || state == GpuParts::State::kOn;
      if (records && !budget.is_paused()) {
        const double calls = calls_per_s / 1e3;
        sum.calls += static_cast<std::uint64_t>(calls);
        sum.cost_ns += static_cast<std::int64_t>(calls * ns_per_call());
      }
      if (state == GpuParts::State::kOn) {
        sum.gpu_calls_ns += static_cast<std::int64_t>(gpu_calls_ns_per_s / 1e3);
        gpu_on_ns += kMs;
      }
      const auto change = budget.update(now_ns, kWall + now_ns, sum);
      if (change && change->begins_gpu) {
        now_ns += GpuParts::kComing;
        sum.gpu_moves_ns += GpuParts::kComing;
        budget.gpu_began(now_ns, kWall + now_ns, sum);
      } else if (change && change->ends_recording) {
        sum.gpu_moves_ns += GpuParts::kLeaving;
      }
      most_beyond_ns = std::max(most_beyond_ns, static_cast<double>(sum.total_ns()) -
                                                    budget.ratio() * static_cast<double>(now_ns));
    }
  }
  double ns_per_call() const {
    const Thinning now = budget.thinning();
    return plain_ns * (now == Thinning::kShortOperators ? 1 - short_share : 1) +
           (now < Thinning::kStacks ? stack_ns : 0) + (now < Thinning::kInputs ? inputs_ns : 0);
  }
  void run(std::int64_t ms) {
    for (std::int64_t until = now_ns + ms * kMs; now_ns < until;) {
      now_ns += step_ms * kMs;
      const double seconds = static_cast<double>(step_ms) / 1e3;
      if (budget.end_ns()) {
        budget.update(now_ns, kWall + now_ns, sum);
        continue;
      }
      if (budget.is_paused()) {
        paused_ns += step_ms * kMs;
      } else {
        const double calls = calls_per_s * seconds;
        sum.calls += static_cast<std::uint64_t>(calls);
        sum.cost_ns += static_cast<std::int64_t>(calls * ns_per_call());
      }
      if (!budget.is_paused() || budget.thinning() != Thinning::kRangesInParts)
        sum.ranges_ns += static_cast<std::int64_t>(ranges_ns_per_s * seconds);
      if (!budget.memory_end_ns())
        sum.memory_ns += static_cast<std::int64_t>(memory_ns_per_s * seconds);
      sum.gpu_calls_ns += static_cast<std::int64_t>(gpu_calls_ns_per_s * seconds);
      const auto change = budget.update(now_ns, kWall + now_ns, sum);
      if (change && change->before != change->after) ++level_changes;
    }
  }
};

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

// 10 % of the time: 9 % beyond the budget, so its 80 ms (the budget of 8 s) are spent after 889 ms.
// The credit of 100 ms lasts 1 s: until the end nothing is left out.
TEST(CostBudgetTest, AGpuThatAloneIsTooMuchEndsTheRecording) {
  Program program(0.01);
  program.gpu_calls_ns_per_s = 0.1e9;
  program.calls_per_s = 30'000;  // 300 ns each: 0.9 %
  program.run(888);
  EXPECT_EQ(program.budget.end_ns(), std::nullopt);
  EXPECT_EQ(program.budget.thinned_json(), "[]");
  program.run(1);
  EXPECT_EQ(program.budget.end_ns(), kWall + 889 * kMs);
  EXPECT_EQ(program.budget.thinned_json(),
            R"([{"from_ns": 1700000000889000000, "to_ns": null, "what": "everything", )"
            R"("share_ratio": 0.1000}])");
  program.run(10'000 - 889);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
  EXPECT_LT(program.budget.share(), 0.01);
}

// 2 %: 1 % beyond the budget, so 80 ms after 8 s. The credit lasts 5 s; then the GPU takes the
// operators' budget, too.
TEST(CostBudgetTest, AfterItsCreditTheGpuTakesTheOperatorsBudget) {
  Program program(0.01, false, false);
  program.gpu_calls_ns_per_s = 0.02e9;
  program.calls_per_s = 30'000;  // 300 ns each: 0.9 %
  program.run(4'900);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
  program.run(2'000);
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  program.run(53'100);
  EXPECT_EQ(program.budget.end_ns(), kWall + 8'001 * kMs);
  EXPECT_THAT(program.budget.cost_json(), HasSubstr(R"("gpu_calls_ns": 160020000, )"));
}

// 0.9 % for the GPU and 3 % for operators: the budget is kept but for the credit (100 ms) and the debt.
TEST(CostBudgetTest, AGpuThatFitsStaysAndOperatorsMakeRoom) {
  Program program(0.01, false, false);
  program.gpu_calls_ns_per_s = 0.009e9;
  program.calls_per_s = 100'000;
  program.run(60'000);
  EXPECT_EQ(program.budget.end_ns(), std::nullopt);
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  EXPECT_LT(program.budget.share() * 60, 0.01 * 60 + 0.1 + 0.0025 + 0.001);
}

// Nothing costs anything until the first part. It needs 12 ms to come, 6 ms to leave, 4.5 ms in reserve
// (2.5 ms of debt, 2 ms late) and 10 ms to spend: 32.5 ms, saved after 3.25 s.
TEST(CostBudgetTest, TheGpuComesWhenAWholePartIsPaidFor) {
  Program program(0.01, false, false, false, true);
  EXPECT_EQ(program.budget.gpu().wait_ns(), 4'333'333'333);  // if operators take their quarter
  program.run_in_parts(3'249);
  EXPECT_EQ(program.budget.gpu().state(), GpuParts::State::kWaiting);
  program.run_in_parts(1);
  EXPECT_EQ(program.budget.gpu().state(), GpuParts::State::kOn);
  program.run_in_parts(3'600'000);  // no launch: it stays
  EXPECT_EQ(program.budget.gpu().state(), GpuParts::State::kOn);
  EXPECT_EQ(program.budget.gpu().parts().size(), 1u);
  EXPECT_EQ(program.budget.thinned_json(), "[]");
  EXPECT_EQ(program.budget.gpu().json(kWall),
            R"({"recording_from_ns": 1700000000000000000, "parts": )"
            R"([{"from_ns": 1700000003262000000, "to_ns": null}]})");
}

// Whatever launches and operators cost, and whenever it ends: the budget and the debt of operators at
// the start are all that it cost.
TEST(CostBudgetTest, WithTheGpuInPartsTheBudgetIsKeptAtEveryMoment) {
  for (const double ratio : {0.005, 0.01, 0.05})
    for (const double launches : {0.004, 0.02, 0.085, 0.5})
      for (const double calls_per_s : {0.0, 100'000.0, 1'000'000.0}) {
        Program program(ratio, false, false, false, true);
        program.gpu_calls_ns_per_s = launches * 1e9;
        program.calls_per_s = calls_per_s;
        program.run_in_parts(25'000);
        const double a_look_ns = (launches + calls_per_s * 100 / 1e9) * kMs;
        EXPECT_LE(program.most_beyond_ns, program.budget.debt_limit_ns() + a_look_ns)
            << ratio << " " << launches << " " << calls_per_s;
        EXPECT_GE(program.budget.gpu().parts().size(), 1u);
        EXPECT_GT(program.gpu_on_ns, 0);
      }
}

// 8.5 % for launches, nothing else: a part of 10 ms pays for 0.13 s and what is held in reserve. Each
// has twice as much as the one before; the sixth is the last.
TEST(CostBudgetTest, EachPartIsTwiceAsLongAsTheOneBefore) {
  Program program(0.01, false, false, false, true);
  program.gpu_calls_ns_per_s = 0.085e9;
  program.run_in_parts(120'000);
  EXPECT_EQ(program.budget.gpu().state(), GpuParts::State::kOver);
  const auto& parts = program.budget.gpu().parts();
  ASSERT_EQ(parts.size(), 6u);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double length_ns = static_cast<double>(*parts[i].to_ns - parts[i].from_ns);
    const double paid_ns = 10e6 * static_cast<double>(1 << i) / (0.085 - 0.01);
    EXPECT_GT(length_ns, paid_ns) << i;
    EXPECT_LT(length_ns, paid_ns + 120e6) << i;
  }
}

// 0.4 % for launches, 3 % for operators: the GPU stays, and operators make room for it.
TEST(CostBudgetTest, FewLaunchesStayForEverAndOperatorsMakeRoom) {
  Program program(0.01, false, false, false, true);
  program.gpu_calls_ns_per_s = 0.004e9;
  program.calls_per_s = 300'000;
  program.run_in_parts(120'000);
  EXPECT_EQ(program.budget.gpu().parts().size(), 1u);
  EXPECT_EQ(program.budget.gpu().state(), GpuParts::State::kOn);
  EXPECT_EQ(program.budget.thinning(), Thinning::kOperatorsInParts);
  EXPECT_GT(program.budget.share(), 0.008);
}

TEST(CostBudgetTest, APartBeginsWithAllDetails) {
  Program program(0.01, true, true, false, true);
  program.calls_per_s = 1'000'000;
  program.gpu_calls_ns_per_s = 0.004e9;
  while (program.budget.gpu().state() == GpuParts::State::kWaiting) program.run_in_parts(1);
  EXPECT_LT(program.now_ns, 4'700 * kMs);
  EXPECT_EQ(program.budget.thinning(), Thinning::kNothing);
  EXPECT_FALSE(program.budget.is_paused());
  EXPECT_THAT(program.budget.thinned_json(), ::testing::Not(HasSubstr("\"to_ns\": null")));
}

TEST(CostBudgetTest, WithoutCuptiOperatorsHaveTheWholeBudget) {
  Program program(0.01, false, false, false, true);
  EXPECT_DOUBLE_EQ(program.budget.gpu().operators_ratio(), 0.0025);
  program.budget.gpu_failed();
  EXPECT_DOUBLE_EQ(program.budget.gpu().operators_ratio(), 0.01);
  program.run_in_parts(10'000);
  EXPECT_TRUE(program.budget.gpu().parts().empty());
}

TEST(CostBudgetTest, EachWindowWaitsForAPartOfItsOwn) {
  Program program(0.01, false, false, false, true);
  program.gpu_calls_ns_per_s = 0.001e9;
  program.run_in_parts(4'000);
  ASSERT_EQ(program.budget.gpu().state(), GpuParts::State::kOn);
  program.budget.close(program.now_ns, kWall + program.now_ns, program.sum);
  EXPECT_EQ(program.budget.gpu().state(), GpuParts::State::kWaiting);
  EXPECT_EQ(program.budget.gpu().parts().front().to_ns, kWall + program.now_ns);
  program.budget.open(program.now_ns, kWall + program.now_ns, program.sum);
  program.run_in_parts(5'000);
  EXPECT_EQ(program.budget.gpu().parts().size(), 2u);
}

// The time between windows does not count, so the next window of a schedule ends, too.
TEST(CostBudgetTest, TheNextWindowEndsUntilTheGpuIsPaidFor) {
  Program program(0.01, false, false);
  program.gpu_calls_ns_per_s = 0.1e9;
  program.run(1'000);
  program.budget.close(program.now_ns, kWall + program.now_ns, program.sum);
  program.now_ns += 5'000 * kMs;
  program.budget.open(program.now_ns, kWall + program.now_ns, program.sum);
  program.sum.gpu_calls_ns += 10 * kMs;
  const auto again =
      program.budget.update(program.now_ns + kMs, kWall + program.now_ns, program.sum);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->ends_recording);
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
