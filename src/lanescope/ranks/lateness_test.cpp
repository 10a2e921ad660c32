#include "lanescope/ranks/lateness.h"

#include <gtest/gtest.h>

#include <vector>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_helpers_test.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {
namespace {

// What one rank does in a step: it computes, sums with the other rank of its pair from the end of that until `pair_us`, and
// then with all ranks until 6500 us. `exposed_us`: so much of both sums is exposed.
struct Rank {
  std::int64_t compute_us = 0, sums_us = 0, pair_us = 0, exposed_us = 0;
};

// Four ranks in two pairs, four steps.
Job job_of(const std::vector<Rank>& ranks) {
  std::vector<RankFile> files;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    DrawnRank drawn(number, 4);
    for (std::int64_t step = 0; step < 4; ++step) {
      const std::int64_t at = step * 10'000;
      const Rank& rank = ranks[i];
      drawn.step(step, at, rank.compute_us, 0, rank.exposed_us);
      drawn.in_group(i < 2 ? "a" : "b", 2, "pairs");
      drawn.call(at + rank.sums_us, at + rank.pair_us, rank.exposed_us / 2);
      drawn.in_group("0", 4);
      drawn.call(at + rank.pair_us, at + 6500, rank.exposed_us - rank.exposed_us / 2);
    }
    files.push_back(drawn.file());
  }
  return *build_job(std::move(files));
}

// 2 ms of computation everywhere. The second pair's sum takes 4 ms instead of 1 ms, so its ranks come 3 ms later to the sum
// of all: 3 / 6.5 = 46 %.
TEST(LatenessTest, ASlowSumOfAPairIsNoWorkOfItsRanks) {
  const JobVerdict verdict = judge_job(job_of({{2000, 2000, 3000, 4500},
                                               {2000, 2000, 3000, 4500},
                                               {2000, 2000, 6000, 4500},
                                               {2000, 2000, 6000, 4500}}));
  EXPECT_EQ(verdict.kind, VerdictKind::kUnknown);
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_EQ(verdict.reason,
            "ranks 2 and 3 come 3.00 ms later than the others to collectives of a step (46 % of "
            "6.50 ms), but not by "
            "what they do themselves: own times are 2.00 ms there and 2.00 ms on the others. "
            "Collectives of smaller "
            "groups may have made them late");
}

// Rank 3 computes 3 ms longer. Rank 2 waits for it in their pair, and both come late to the sum of all.
TEST(LatenessTest, WhoWaitsForALateRankInAPairIsNotLate) {
  const JobVerdict verdict = judge_job(job_of({{2000, 2000, 3000, 4500},
                                               {2000, 2000, 3000, 4500},
                                               {2000, 2000, 6000, 4500},
                                               {5000, 5000, 6000, 1500}}));
  EXPECT_EQ(verdict.kind, VerdictKind::kStraggler);
  EXPECT_EQ(verdict.ranks, std::vector<std::int64_t>{3});
  EXPECT_EQ(verdict.late_ns, 3'000'000);
  ASSERT_FALSE(verdict.causes.empty());
  EXPECT_EQ(verdict.causes[0].cause, LateCause::kCompute);
}

// The near miss: hardly any communication is exposed, so it did not make the ranks late. Own times are alike, because the
// first pair waits next to its computation, which that slows.
TEST(LatenessTest, RanksThatCommunicateLessThanTheyAreLateStayLate) {
  const JobVerdict verdict = judge_job(job_of({{6000, 2000, 3000, 500},
                                               {6000, 2000, 3000, 500},
                                               {6000, 5000, 6000, 500},
                                               {6000, 5000, 6000, 500}}));
  EXPECT_EQ(verdict.kind, VerdictKind::kStraggler);
  EXPECT_EQ(verdict.ranks, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(verdict.late_ns, 3'000'000);
}

TEST(LatenessTest, OwnLatenessCountsFromTheMedianOfTheStep) {
  const Job job = job_of({{2000, 2000, 3000, 4500},
                          {2500, 2500, 3000, 4000},
                          {1000, 1000, 6000, 5500},
                          {5000, 5000, 6000, 1500}});
  const Lateness own = own_lateness(job);
  ASSERT_EQ(own.size(), 4u);
  EXPECT_EQ(own[0],
            (std::vector<std::int64_t>{0, 500'000, 0, 3'000'000}));  // the lower median is 2 ms
  EXPECT_EQ(mean_lateness(job, own), own[0]);
  EXPECT_TRUE(has_smaller_groups(job));
}

}  // namespace
}  // namespace lanescope::ranks
