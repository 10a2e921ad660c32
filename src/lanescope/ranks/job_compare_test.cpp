#include "lanescope/ranks/job_compare.h"

#include <gtest/gtest.h>

#include "lanescope/ranks/job_helpers_test.h"

namespace lanescope::ranks {
namespace {

// A step of 1000 us plus `late`: rank 1 is idle `late` longer, and rank 0 waits for it. The all-reduce
// takes 160 us, `calls` times.
Job job_of(std::int64_t late, std::int64_t ranks = 2, std::int64_t calls = 1,
           std::int64_t length = 160) {
  std::vector<RankFile> files;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    DrawnRank drawn(rank, ranks, rank * 5000);
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t at = i * 10000, extra = rank == 1 ? late : 0;
      const std::int64_t end = at + 840 + late + length * calls;
      drawn.step(i, at, 840, extra, late - extra + length * calls);
      for (std::int64_t call = 0; call < calls; ++call)
        drawn.call(call == 0 ? at + 840 + extra : end - length * (calls - call),
                   end - length * (calls - call - 1), call == 0 ? late - extra + length : length);
    }
    files.push_back(drawn.file());
  }
  return *build_job(std::move(files));
}

constexpr std::size_t part(JobPart which) { return static_cast<std::size_t>(which); }

// Means over two ranks: 300 us of idle on one of them are 150, and so are the other's waits.
TEST(JobCompareTest, ChangesOfThePartsAddUpToThatOfTheStep) {
  const auto change = compare_jobs(job_of(0), job_of(300));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->a_step_ns, 1'000'000);
  EXPECT_EQ(change->b_step_ns, 1'300'000);
  EXPECT_EQ(change->b[part(JobPart::kCpuIdle)] - change->a[part(JobPart::kCpuIdle)], 150'000);
  EXPECT_EQ(change->b[part(JobPart::kWaits)] - change->a[part(JobPart::kWaits)], 150'000);
  EXPECT_EQ(change->b[part(JobPart::kCompute)], change->a[part(JobPart::kCompute)]);
  EXPECT_EQ(change->limit_ns, 50'000);  // 3 % of 1300 us is less
  EXPECT_TRUE(change->changed(JobPart::kCpuIdle));
  EXPECT_FALSE(change->changed(JobPart::kCompute));
}

TEST(JobCompareTest, OnlyTheRankThatDoesMoreItselfChanged) {
  const auto change = compare_jobs(job_of(0), job_of(300));
  ASSERT_TRUE(change);
  ASSERT_EQ(change->ranks.size(), 2u);
  EXPECT_FALSE(change->ranks[0].own_changed);
  EXPECT_TRUE(change->ranks[0].waits_changed);
  EXPECT_TRUE(change->ranks[1].own_changed);
  EXPECT_FALSE(change->ranks[1].waits_changed);
  EXPECT_EQ(change->ranks[1].most_changed, JobPart::kCpuIdle);
  EXPECT_EQ(change->ranks[1].b_own_ns - change->ranks[1].a_own_ns, 300'000);
}

TEST(JobCompareTest, ASmallChangeIsNone) {
  const auto change = compare_jobs(job_of(0), job_of(40));
  ASSERT_TRUE(change);
  for (const RankChange& rank : change->ranks) {
    EXPECT_FALSE(rank.own_changed);
    EXPECT_FALSE(rank.waits_changed);
  }
  EXPECT_TRUE(change->collectives.empty());
}

// The errors of the clocks are a ninth of 2000 us in each job, 444 us together: a wait of 300 us more
// is not known well enough.
TEST(JobCompareTest, NothingBelowTheClocksErrorIsAChange) {
  const auto change = compare_jobs(job_of(0, 2, 1, 2000), job_of(300, 2, 1, 2000));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->clock_limit_ns, 444'444);
  EXPECT_FALSE(change->ranks[0].waits_changed);
  EXPECT_TRUE(change->ranks[1].own_changed);
}

// Computation hides 140 us of an all-reduce of 160 us. Then rank 1 comes 300 us later, and 180 of 460 us are exposed on
// rank 0: whether these are waits is unknown. They are if computation hides the transfer, as before.
TEST(JobCompareTest, WaitsThatMayBeHiddenAreNoChangeOfTransfer) {
  const auto job = [](std::int64_t late) {
    std::vector<RankFile> files;
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      DrawnRank drawn(rank, 2);
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t at = i * 10000, exposed = rank == 0 && late > 0 ? 180 : 20;
        drawn.step(i, at, 1300 - exposed, 0, exposed);
        drawn.call(at + (rank == 1 ? late : 0), at + late + 160, exposed);
      }
      files.push_back(drawn.file());
    }
    return *build_job(std::move(files));
  };
  const auto change = compare_jobs(job(0), job(300));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->a[part(JobPart::kTransfer)], 20'000);
  EXPECT_EQ(change->b[part(JobPart::kTransfer)], 90'000);  // mean of 160 and 20
  EXPECT_EQ(change->b[part(JobPart::kWaits)], 10'000);     // mean of 20 and 0
  EXPECT_EQ(change->b_most_waits_ns, 90'000);              // mean of 180 and 0
  EXPECT_FALSE(change->changed(JobPart::kTransfer));
  EXPECT_FALSE(change->changed(JobPart::kWaits));
}

TEST(JobCompareTest, ACollectiveThatIsCalledMoreOftenIsNamed) {
  const auto change = compare_jobs(job_of(0), job_of(0, 2, 3));
  ASSERT_TRUE(change);
  ASSERT_EQ(change->collectives.size(), 1u);
  const CollectiveChange& more = change->collectives[0];
  EXPECT_EQ(more.kind, "allreduce of 1000 Float");
  EXPECT_TRUE(more.count_changed);
  EXPECT_EQ(more.a->per_step, 1);
  EXPECT_EQ(more.b->per_step, 3);
  EXPECT_EQ(more.step_ns, 320'000);
}

TEST(JobCompareTest, ACollectiveThatTakesLongerIsNamed) {
  const auto change = compare_jobs(job_of(0), job_of(0, 2, 1, 400));
  ASSERT_TRUE(change);
  ASSERT_EQ(change->collectives.size(), 1u);
  EXPECT_TRUE(change->collectives[0].time_changed);
  EXPECT_FALSE(change->collectives[0].count_changed);
  EXPECT_EQ(change->collectives[0].step_ns, 240'000);
}

TEST(JobCompareTest, RanksOfOneJobOnlyAreNamed) {
  const auto change = compare_jobs(job_of(0, 2), job_of(0, 4));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->ranks.size(), 2u);
  EXPECT_EQ(change->only_b, (std::vector<std::int64_t>{2, 3}));
}

TEST(JobCompareTest, AJobWithoutStepsCannotBeCompared) {
  const Job none = *build_job({DrawnRank(0, 1).file()});
  const auto change = compare_jobs(none, job_of(0));
  ASSERT_FALSE(change);
  EXPECT_NE(change.error().message.find("the first job has none"), std::string::npos);
}

Job found_job(const std::string& unit, std::uint64_t kernels) {
  std::vector<RankFile> files;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    DrawnRank drawn(rank, 2, 0);
    for (std::int64_t i = 0; i < 4; ++i)
      drawn.step(i, i * 10000, 840, 0, 160).call(i * 10000 + 840, i * 10000 + 1000, 160);
    files.push_back(drawn.found(unit, kernels).file());
  }
  return *build_job(std::move(files));
}

TEST(JobCompareTest, AStepThatIsAPartOfTheOtherJobsStepIsNotCompared) {
  const auto parts = compare_jobs(found_job("one round", 20), found_job("20 x Adam.step", 400));
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, Errc::kInvalidArgument);
  EXPECT_NE(parts.error().message.find("\"one round\" with 20 kernels"), std::string::npos);
  const auto marked = compare_jobs(found_job("one round", 20), found_job("", 400));
  ASSERT_FALSE(marked);
  EXPECT_NE(marked.error().message.find("what prof.step() marks with 400"), std::string::npos);
}

// The same unit may have other kernels: the program changed. Another unit may hold as much: 30 is 1.5 times 20.
TEST(JobCompareTest, StepsOfTheSameUnitOrSizeAreCompared) {
  EXPECT_TRUE(compare_jobs(found_job("one round", 20), found_job("one round", 400)));
  EXPECT_TRUE(compare_jobs(found_job("one round", 20), found_job("", 30)));
  EXPECT_FALSE(compare_jobs(found_job("one round", 20), found_job("", 31)));
  EXPECT_FALSE(compare_jobs(found_job("one round", 0), found_job("", 0)));
}

}  // namespace
}  // namespace lanescope::ranks
