#include "lanescope/ranks/job_budget.h"

#include <gtest/gtest.h>

#include "lanescope/ranks/job_helpers_test.h"

namespace lanescope::ranks {
namespace {

// A step of 1000 us: rank 0 computes 600 and waits 240 for rank 1, which computes 840; the all-reduce
// itself takes 160, so the clocks' error is a ninth of it.
Job late_job(std::int64_t world = 2) {
  DrawnRank zero(0, world), one(1, world, 5000);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = i * 1000;
    zero.step(i, at, 600, 0, 400).call(at + 600, at + 1000, 400);
    one.step(i, at, 840, 0, 160).call(at + 840, at + 1000, 160);
  }
  return *build_job({zero.file(), one.file()});
}

explain::Limit limit(std::string_view key, bool at_most, std::string_view text) {
  for (const explain::Measure& measure : job_measures())
    if (measure.key == key) return *explain::parse_limit(measure, at_most, text);
  ADD_FAILURE() << "no measure " << key;
  return {};
}

JobBudgetReport check(const Job& job, JobBudget budget) {
  return check_job(job, judge_job(job), budget);
}

TEST(JobBudgetTest, TheRankThatIsClosestToALimitDecides) {
  const auto report = check(
      late_job(), {.limits = {limit("waits", true, "240 us"), limit("compute", true, "800 us"),
                              limit("compute", false, "60 %")}});
  ASSERT_EQ(report.lines.size(), 3u);
  EXPECT_EQ(report.lines[0].state, explain::BudgetState::kKept);  // the limit itself is allowed
  EXPECT_EQ(report.lines[0].rank, 0);
  EXPECT_EQ(report.lines[0].value, 240'000);
  EXPECT_EQ(report.lines[0].error_ns, 17'777);
  EXPECT_EQ(report.lines[1].state, explain::BudgetState::kBroken);
  EXPECT_EQ(report.lines[1].rank, 1);
  EXPECT_EQ(report.lines[1].value, 840'000);
  EXPECT_EQ(report.lines[2].state, explain::BudgetState::kKept);  // rank 0: 600 of 1000
  EXPECT_EQ(report.lines[2].rank, 0);
  EXPECT_DOUBLE_EQ(report.lines[2].value, 0.6);
  EXPECT_EQ(report.broken, 1u);
  EXPECT_FALSE(report.kept());
}

TEST(JobBudgetTest, NumbersOfTheWholeJobHaveNoRank) {
  const auto report =
      check(late_job(4),
            {.limits = {limit("own_spread", true, "239 us"), limit("steps", false, "4"),
                        limit("missing_ranks", true, "1"), limit("clock_error", true, "20 us")}});
  ASSERT_EQ(report.lines.size(), 4u);
  EXPECT_EQ(report.lines[0].state, explain::BudgetState::kBroken);  // 840 - 600
  EXPECT_EQ(report.lines[0].value, 240'000);
  EXPECT_EQ(report.lines[0].rank, -1);
  EXPECT_EQ(report.lines[1].state, explain::BudgetState::kKept);
  EXPECT_EQ(report.lines[2].state, explain::BudgetState::kBroken);
  EXPECT_EQ(report.lines[2].value, 2);
  EXPECT_EQ(report.lines[3].state, explain::BudgetState::kKept);
}

TEST(JobBudgetTest, AForbiddenVerdictBreaksTheBudget) {
  const auto broken = check(late_job(), {.must_not_be = {"straggler"}});
  ASSERT_EQ(broken.lines.size(), 1u);
  EXPECT_EQ(broken.lines[0].state, explain::BudgetState::kBroken);
  EXPECT_EQ(broken.lines[0].text, "straggler");
  EXPECT_TRUE(check(late_job(), {.must_not_be = {"rotating"}}).kept());
}

// One file: nothing links clocks, and there is no verdict. What was not measured is never kept.
TEST(JobBudgetTest, WhatTheFilesLackIsNotKept) {
  DrawnRank zero(0, 2);
  zero.step(0, 0, 600, 0, 400).call(600, 1000, 400);
  RankFile bad{"rank1.json", Error{Errc::kCorruptInput, "no trace"}};
  const Job job = *build_job({zero.file(), bad});
  const auto report =
      check(job, {.limits = {limit("wall", true, "2 ms")}, .must_not_be = {"straggler"}});
  ASSERT_EQ(report.lines.size(), 3u);
  EXPECT_EQ(report.lines[0].key, "damage");
  EXPECT_EQ(report.lines[1].state, explain::BudgetState::kKept);
  EXPECT_EQ(report.lines[2].state, explain::BudgetState::kMissing);
  EXPECT_EQ(report.missing, 2u);
  EXPECT_TRUE(check(job, {.allow_damage = true, .limits = {limit("wall", true, "2 ms")}}).kept());
}

}  // namespace
}  // namespace lanescope::ranks
