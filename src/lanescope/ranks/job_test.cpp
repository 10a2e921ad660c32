#include "lanescope/ranks/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "lanescope/ranks/job_helpers_test.h"
#include "lanescope/ranks/job_verdict.h"
#include "lanescope/ranks/part_file.h"
#include "lanescope/ranks/summary_text.h"

namespace lanescope::ranks {
namespace {

// A step of 1000 us: rank 0 computes 600 and waits 240 for rank 1, which computes 840; the all-reduce
// itself takes 160. Rank 1's clock is 5000 us ahead.
std::vector<RankFile> straggler_job() {
  DrawnRank zero(0, 2), one(1, 2, 5000);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = i * 1000;
    zero.step(i, at, 600, 0, 400).call(at + 600, at + 1000, 400);
    one.step(i, at, 840, 0, 160).call(at + 840, at + 1000, 160);
  }
  return {zero.file(), one.file()};
}

TEST(JobTest, OwnTimeAndWaitsAddUpToTheStep) {
  const Result<Job> job = build_job(straggler_job());
  ASSERT_TRUE(job);
  ASSERT_EQ(job->times.size(), 2u);
  EXPECT_EQ(job->times[0].wall_ns, 1'000'000);
  EXPECT_EQ(job->times[0].own_ns, 600'000);
  EXPECT_EQ(job->times[0].exposed_wait_ns, 240'000);
  EXPECT_EQ(job->times[0].exposed_transfer_ns(), 160'000);
  EXPECT_EQ(job->times[1].own_ns, 840'000);
  EXPECT_EQ(job->times[1].exposed_wait_ns, 0);
  EXPECT_EQ(job->last_arrivals, (std::vector<std::uint64_t>{0, 4}));
  EXPECT_TRUE(job->remarks.empty());
}

// Both leave at the same moment, so the offset is exact. 160 us together / 9 = 17.8 us of error. It is
// certain that rank 1 starts (5840 on its clock) before rank 0 ends (1000), so the offset is at least
// 4840; and that rank 0 starts (600) before rank 1 ends (6000): at most 5400.
TEST(JobTest, ClockOffsetsComeFromTheEndsOfCollectives) {
  const Result<Job> job = build_job(straggler_job());
  ASSERT_TRUE(job);
  const RankClock& clock = job->clocks[1];
  EXPECT_TRUE(clock.known);
  EXPECT_EQ(clock.offset_ns, 5'000'000);
  EXPECT_EQ(clock.error_ns, 17'777);
  EXPECT_EQ(clock.lowest_ns, 4'840'000);
  EXPECT_EQ(clock.highest_ns, 5'400'000);
  EXPECT_FALSE(clock.contradicts);
}

TEST(JobTest, TheLateRankIsNamedWithItsCause) {
  const Result<Job> job = build_job(straggler_job());
  ASSERT_TRUE(job);
  const JobVerdict verdict = judge_job(*job);
  EXPECT_EQ(verdict.kind, VerdictKind::kStraggler);
  EXPECT_EQ(verdict.ranks, std::vector<std::int64_t>{1});
  EXPECT_EQ(verdict.late_ns, 240'000);
  EXPECT_EQ(verdict.late_steps, 4u);
  EXPECT_TRUE(verdict.since_start);
  EXPECT_EQ(verdict.causes.front().cause, LateCause::kCompute);
  EXPECT_EQ(verdict.causes.front().longer_ns, 240'000);
}

// Rank 1 waits 240 us longer for its CPU, which takes 500 us for the operators that take rank 0 300, and none of
// its parts is 120 us longer. With one that is, the cause is that part.
TEST(JobTest, ACpuThatIsSlowerInEverythingIsExplainedByItsOperators) {
  for (const std::int64_t part_us : {100, 130}) {
    DrawnRank zero(0, 2), one(1, 2);
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t at = i * 1000;
      zero.step(i, at, 600, 0, 400).call(at + 600, at + 1000, 400);
      one.step(i, at, 600, 240, 160).call(at + 840, at + 1000, 160);
    }
    zero.cpu(300, 0, 0);
    one.cpu(500, 0, 0).host_part("aten::mm", 4 * part_us);
    const Result<Job> job = build_job({zero.file(), one.file()});
    ASSERT_TRUE(job);
    const JobVerdict verdict = judge_job(*job);
    ASSERT_EQ(verdict.kind, VerdictKind::kStraggler);
    EXPECT_EQ(verdict.causes.front().longer_ns, 240'000);
    EXPECT_EQ(verdict.host_work_ns, part_us == 100 ? 500'000 : 0);
    EXPECT_EQ(verdict.others_work_ns, part_us == 100 ? 300'000 : 0);
  }
}

// One step: rank 1 begins it 300 us after rank 0, does the same work, and rank 0 waits for it. With three such
// steps, what comes again in each of them is a straggler, whatever the cause.
TEST(JobTest, ALateStartOfFewStepsIsNoVerdict) {
  for (const std::int64_t steps : {1, 2, 3}) {
    DrawnRank zero(0, 2), one(1, 2);
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t at = i * 1300;
      zero.step(i, at, 600, 0, 700).call(at + 600, at + 1300, 700);
      one.step(i, at + 300, 600, 0, 400).call(at + 900, at + 1300, 400);
    }
    const Result<Job> job = build_job({zero.file(), one.file()});
    ASSERT_TRUE(job);
    const JobVerdict verdict = judge_job(*job);
    if (steps == 3) {
      EXPECT_EQ(verdict.kind, VerdictKind::kStraggler);
      continue;
    }
    EXPECT_EQ(verdict.kind, VerdictKind::kUnknown);
    EXPECT_NE(verdict.reason.find("0.30 ms later than the others"), std::string::npos)
        << verdict.reason;
    EXPECT_NE(verdict.reason.find("only 0.00 ms more"), std::string::npos) << verdict.reason;
  }
}

// The near miss: 25 us of 1000 are less than 3 %, and less than 50 us.
TEST(JobTest, ASmallDifferenceIsNoVerdict) {
  DrawnRank zero(0, 2), one(1, 2);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = i * 1000;
    zero.step(i, at, 815, 0, 185).call(at + 815, at + 1000, 185);
    one.step(i, at, 840, 0, 160).call(at + 840, at + 1000, 160);
  }
  const Result<Job> job = build_job({zero.file(), one.file()});
  ASSERT_TRUE(job);
  EXPECT_EQ(judge_job(*job).kind, VerdictKind::kBalanced);
}

// Rank 1 computes longer, but nobody waits for it: it is no straggler.
TEST(JobTest, ARankThatNobodyWaitsForHoldsNobodyUp) {
  DrawnRank zero(0, 2), one(1, 2);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = i * 1000;
    zero.step(i, at, 600, 0, 10).call(at + 100, at + 200, 10);
    one.step(i, at, 900, 0, 10).call(at + 100, at + 200, 10);
  }
  const Result<Job> job = build_job({zero.file(), one.file()});
  ASSERT_TRUE(job);
  EXPECT_NE(judge_job(*job).kind, VerdictKind::kStraggler);
}

TEST(JobTest, TheOrderOfFilesAndThePartsTheyComeInDoNotMatter) {
  std::vector<RankFile> files = straggler_job();
  const Result<Job> job = build_job(files);
  const auto part = read_part(write_part(files), "part");
  ASSERT_TRUE(job && part);
  std::vector<RankFile> turned(part->rbegin(), part->rend());
  const Result<Job> other = build_job(turned);
  ASSERT_TRUE(other);
  ASSERT_EQ(other->ranks.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(write_summary(job->ranks[i]), write_summary(other->ranks[i]));
  EXPECT_EQ(job->clocks[1].offset_ns, other->clocks[1].offset_ns);
  EXPECT_EQ(job->times[0].exposed_wait_ns, other->times[0].exposed_wait_ns);
}

bool has(const Job& job, RemarkKind kind, std::string_view part) {
  return std::any_of(job.remarks.begin(), job.remarks.end(), [&](const Remark& remark) {
    return remark.kind == kind && remark.text.find(part) != std::string::npos;
  });
}

TEST(JobTest, FilesThatDoNotFitAreNamedAndTheOthersCount) {
  std::vector<RankFile> files = straggler_job();
  files.push_back({"copy_of_rank1.json", std::get<RankSummary>(files[1].content)});
  std::get<RankSummary>(files.back().content).file = "copy_of_rank1.json";
  files.push_back({"bad.json", Error{Errc::kCorruptInput, "expected a trace"}});
  files.push_back(DrawnRank(2, 64).file());
  const Result<Job> job = build_job(files);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->numbers, (std::vector<std::int64_t>{0, 1}));
  EXPECT_TRUE(has(*job, RemarkKind::kDuplicate, "rank 1 as well"));
  EXPECT_TRUE(has(*job, RemarkKind::kUnreadable, "bad.json is left out: expected a trace"));
  EXPECT_TRUE(has(*job, RemarkKind::kOtherJob, "with 64 ranks on nccl"));
  EXPECT_EQ(job->remarks.size(), 3u);
}

TEST(JobTest, MissingRanksAreNamed) {
  std::vector<RankFile> files = {DrawnRank(0, 8).file(), DrawnRank(5, 8).file()};
  const Result<Job> job = build_job(files);
  ASSERT_TRUE(job);
  EXPECT_TRUE(has(*job, RemarkKind::kMissing, "no file of ranks 1 to 4, 6 and 7"));
}

// The number after it does not exist: a sanitizer sees that nobody counts there.
TEST(JobTest, TheLargestNumberOfARankIsCountedNoFurther) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const Result<Job> job = build_job({DrawnRank(0, 8).file(), DrawnRank(kLargest, 8).file()});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->numbers, (std::vector<std::int64_t>{0, kLargest}));
  EXPECT_TRUE(has(*job, RemarkKind::kMissing, "no file of ranks 1 to 7"));
}

// In step 0, the second of three calls has another size on rank 2.
TEST(JobTest, ACollectiveOnWhichRanksDisagreeIsNamed) {
  std::vector<RankFile> files;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    DrawnRank drawn(rank, 3);
    drawn.step(0, 0, 100, 0, 0);
    for (std::int64_t i = 0; i < 3; ++i)
      drawn.call(i * 10, i * 10 + 5, 0, i == 1 && rank == 2 ? 77 : 1000 + i);
    files.push_back(drawn.file());
  }
  const Result<Job> job = build_job(files);
  ASSERT_TRUE(job);
  ASSERT_EQ(job->matching.mismatches.size(), 1u);
  EXPECT_TRUE(has(*job, RemarkKind::kMismatch,
                  "rank 2 calls allreduce of 77 Float, the others allreduce of 1001 Float"));
  EXPECT_EQ(job->matching.groups[0].matched, 8u);
  EXPECT_EQ(job->matching.groups[0].unmatched, 1u);
}

// Rank 1 lacks number 11; the others with equal sizes still find their partners.
TEST(JobTest, SequenceNumbersMatchCallsOfEqualSize) {
  DrawnRank zero(0, 2), one(1, 2);
  zero.step(0, 0, 100, 0, 0);
  one.step(0, 0, 100, 0, 0);
  for (std::int64_t i = 0; i < 3; ++i) {
    zero.call(i * 10, i * 10 + 5, 0, 1000, 10 + i);
    if (i != 1) one.call(i * 10, i * 10 + 5, 0, 1000, 10 + i);
  }
  const Result<Job> job = build_job({zero.file(), one.file()});
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->matching.groups[0].by_sequence);
  EXPECT_EQ(job->matching.groups[0].matched, 4u);
  EXPECT_EQ(job->matching.groups[0].unmatched, 1u);
}

// 160 us for 4 MB on 2 ranks: 25 GB/s; bus factor 2 (n - 1) / n = 1.
TEST(JobTest, BandwidthIsOfThePartInWhichAllRanksArePresent) {
  DrawnRank zero(0, 2), one(1, 2);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = i * 1000;
    zero.step(i, at, 600, 0, 400).call(at + 600, at + 1000, 400, 1'000'000);
    one.step(i, at, 840, 0, 160).call(at + 840, at + 1000, 160, 1'000'000);
  }
  const Result<Job> job = build_job({zero.file(), one.file()});
  ASSERT_TRUE(job);
  ASSERT_EQ(job->rates.size(), 1u);
  EXPECT_EQ(job->rates[0].together_ns, 160'000);
  EXPECT_EQ(job->rates[0].wait_ns, 240'000);
  EXPECT_DOUBLE_EQ(job->rates[0].algorithm_bandwidth, 25e9);
  EXPECT_DOUBLE_EQ(job->rates[0].bus_bandwidth, 25e9);
}

TEST(JobTest, NamesOfFilesAndFoldersSayTheRank) {
  EXPECT_EQ(rank_in_name("/x/rank3.json.gz"), 3);
  EXPECT_EQ(rank_in_name("/x/job_rank-12_of_16.json"), 12);
  EXPECT_EQ(rank_in_name("/x/rank_7/trace.json"), 7);
  EXPECT_EQ(rank_in_name("/x/frank3.json"), std::nullopt);
  EXPECT_EQ(rank_in_name("trace.json"), std::nullopt);
}

// Five ranks; 3 and 4, as if on one slow host, compute 240 us longer and come at the same moment. Which of
// the two is last is never certain, and yet the others wait for them.
TEST(JobTest, RanksThatAreLateTogetherHoldTheOthersUp) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 5; ++number) {
    DrawnRank rank(number, 5);
    const std::int64_t work = number >= 3 ? 840 : 600;
    for (std::int64_t i = 0; i < 4; ++i)
      rank.step(i, i * 1000, work, 0, 1000 - work)
          .call(i * 1000 + work, i * 1000 + 1000, 1000 - work);
    files.push_back(rank.file());
  }
  const Result<Job> job = build_job(std::move(files));
  ASSERT_TRUE(job);
  const JobVerdict verdict = judge_job(*job);
  EXPECT_EQ(verdict.kind, VerdictKind::kStraggler);
  EXPECT_EQ(verdict.ranks, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(verdict.late_ns, 240'000);
  EXPECT_EQ(job->last_arrivals, std::vector<std::uint64_t>(5));
}

// Three ranks with steps 0 to 5, of which rank 1 has only the first ones.
JobVerdict job_with_steps(std::int64_t of_rank_1) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 3; ++number) {
    DrawnRank rank(number, 3);
    for (std::int64_t i = 0; i < (number == 1 ? of_rank_1 : 6); ++i)
      rank.step(i, i * 1000, 800, 0, 200).call(i * 1000 + 800, i * 1000 + 1000, 200);
    files.push_back(rank.file());
  }
  return judge_job(*build_job(std::move(files)));
}

TEST(JobTest, ARankThatEndsEarlierThanTheOthersIsNamed) {
  EXPECT_TRUE(has(job_with_steps(3), NoteKind::kUnequalSteps,
                  "Rank 1 ends with step 2, most ranks end with step 5"));
}

// With two ranks there is no majority: both ends are named.
TEST(JobTest, TwoRanksThatEndDifferentlyAreBothNamed) {
  const auto job_of_two = [](std::int64_t of_rank_1) {
    std::vector<RankFile> files;
    for (std::int64_t number = 0; number < 2; ++number) {
      DrawnRank rank(number, 2);
      for (std::int64_t i = 0; i < (number == 1 ? of_rank_1 : 6); ++i)
        rank.step(i, i * 1000, 800, 0, 200).call(i * 1000 + 800, i * 1000 + 1000, 200);
      files.push_back(rank.file());
    }
    return judge_job(*build_job(std::move(files)));
  };
  EXPECT_TRUE(has(job_of_two(4), NoteKind::kUnequalSteps,
                  "different steps: rank 1 ends with step 3, rank 0 ends with step 5."));
  EXPECT_FALSE(has(job_of_two(5), NoteKind::kUnequalSteps, ""));
}

// Rank 1 is 150 of 1000 us late in each step, or 250, by its CPU.
JobVerdict job_with_a_slow_cpu(std::int64_t late_us, const std::string& part) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 2; ++number) {
    DrawnRank rank(number, 2);
    const std::int64_t late = number == 1 ? late_us : 0;
    for (std::int64_t i = 0; i < 4; ++i)
      rank.step(i, i * 1000, 500, late, 500 - late)
          .call(i * 1000 + 500 + late, i * 1000 + 1000, 500 - late);
    files.push_back(rank.host_part(part, 4 * (50 + late)).file());
  }
  return judge_job(*build_job(std::move(files)));
}

// In the same operators as on the other rank a profiler may make such a difference; in code without events,
// or beyond a fifth of the step, it does not.
TEST(JobTest, ACpuThatAProfilerMayHaveSlowedIsNoStraggler) {
  const JobVerdict verdict = job_with_a_slow_cpu(150, "aten::mm's own CPU time");
  EXPECT_EQ(verdict.kind, VerdictKind::kUnknown);
  EXPECT_TRUE(
      verdict.reason.starts_with("rank 1 is 0.15 ms later than the others in each step (15 % "
                                 "of 1.00 ms), but only by the CPU"))
      << verdict.reason;
  EXPECT_EQ(job_with_a_slow_cpu(150, "code without events in forward").kind,
            VerdictKind::kStraggler);
  EXPECT_EQ(job_with_a_slow_cpu(250, "aten::mm's own CPU time").kind, VerdictKind::kStraggler);
}

// The near miss: recordings of one schedule may differ by a step at their ends.
TEST(JobTest, OneStepLessIsNoNote) {
  EXPECT_FALSE(has(job_with_steps(5), NoteKind::kUnequalSteps, ""));
  EXPECT_FALSE(has(job_with_steps(6), NoteKind::kUnequalSteps, ""));
}

}  // namespace
}  // namespace lanescope::ranks
