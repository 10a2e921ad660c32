// A budget and the GPU, whose recording cannot be thinned out: it ends, or comes in parts.
#include <gmock/gmock.h>

#include "lanescope/record/cost_budget_helpers_test.h"

namespace lanescope::record {
namespace {

using ::testing::HasSubstr;

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
  program.run_in_parts(600'000);  // no launch in ten minutes: it stays
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

}  // namespace
}  // namespace lanescope::record
