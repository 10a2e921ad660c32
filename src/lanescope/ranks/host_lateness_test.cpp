#include "lanescope/ranks/host_lateness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lanescope/ranks/job_helpers_test.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {
namespace {

// Two ranks whose GPUs work alike, 10 ms a step; `cpus` says what their CPUs do in a step, in us.
struct Cpu {
  std::int64_t work = 0, loader = 0, outside = 0;
};
Job job_with(const std::vector<Cpu>& cpus, std::int64_t steps = 4) {
  std::vector<RankFile> files;
  for (std::size_t rank = 0; rank < cpus.size(); ++rank) {
    DrawnRank drawn(static_cast<std::int64_t>(rank), static_cast<std::int64_t>(cpus.size()));
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t at = i * 10'000;
      drawn.step(i, at, 9000, 0, 1000).call(at + 9000, at + 10'000, 1000);
    }
    files.push_back(drawn.cpu(cpus[rank].work, cpus[rank].loader, cpus[rank].outside).file());
  }
  return *build_job(std::move(files));
}

std::string hidden_text(const Job& job) {
  const JobVerdict verdict = judge_job(job);
  for (const JobNote& note : verdict.notes)
    if (note.kind == NoteKind::kHiddenCpu) return note.text;
  return "";
}

TEST(HostLatenessTest, ACpuThatIsLateBehindAFullQueueIsNamed) {
  const Job job = job_with({{1000, 0, 500}, {1000, 0, 2500}});
  EXPECT_EQ(judge_job(job).kind, VerdictKind::kBalanced);
  EXPECT_EQ(
      hidden_text(job),
      "The CPU of rank 1 needs 2.00 ms longer a step than the others (20 % of it), in 4 of 4 "
      "steps: outside of operators and calls of the GPU's API. Its GPU had work queued, so no "
      "rank waited. A wait for the GPU before that code, such as loss.item(), would make all "
      "ranks wait.");
}

TEST(HostLatenessTest, TheDataLoaderIsNamed) {
  const Job job = job_with({{1000, 100, 500}, {1000, 1300, 600}, {1000, 100, 500}});
  EXPECT_NE(hidden_text(job).find("rank 1 needs 1.30 ms longer"), std::string::npos);
  EXPECT_NE(hidden_text(job).find("in the DataLoader"), std::string::npos);
}

// Operators take 1.5 times as long, and so may the rest: 3000 instead of 2000 us is usual.
TEST(HostLatenessTest, ACpuThatIsSlowerInEverythingIsNotNamed) {
  const Job job = job_with({{1000, 0, 2000}, {1500, 0, 3000}});
  EXPECT_EQ(measure_host_lateness(job, 500'000).mean_ns, (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(hidden_text(job), "");
}

// The example at the top of host_lateness.cpp.
TEST(HostLatenessTest, OnlyWhatExceedsTheSlownessCounts) {
  const Job job = job_with({{5000, 0, 2000}, {6000, 0, 9000}});
  EXPECT_EQ(measure_host_lateness(job, 500'000).mean_ns[1], 6'600'000);
}

// 499 us of 10 ms are less than 5 %.
TEST(HostLatenessTest, NearMissesAreSilent) {
  EXPECT_EQ(hidden_text(job_with({{1000, 0, 500}, {1000, 0, 999}})), "");
  EXPECT_NE(hidden_text(job_with({{1000, 0, 500}, {1000, 0, 1001}})), "");
  // 800 us late, but another rank is 450 us late: it does not stand out.
  EXPECT_EQ(
      hidden_text(job_with({{1000, 0, 500}, {1000, 0, 1300}, {1000, 0, 950}, {1000, 0, 500}})), "");
  // Most ranks are late.
  EXPECT_EQ(
      hidden_text(job_with(
          {{1000, 0, 500}, {1000, 0, 500}, {1000, 0, 2500}, {1000, 0, 2500}, {1000, 0, 2500}})),
      "");
  // Two steps say little, and without operators it is unknown what the CPU did.
  EXPECT_EQ(hidden_text(job_with({{1000, 0, 500}, {1000, 0, 2500}}, 2)), "");
  EXPECT_EQ(hidden_text(job_with({{0, 0, 500}, {0, 0, 2500}})), "");
}

// Rank 1's GPU waits 2 ms for its CPU, while this makes operators: it ran ahead, and used its lead up in code
// without events.
TEST(HostLatenessTest, TheCauseMayLieEarlierThanTheWait) {
  DrawnRank zero(0, 2), one(1, 2);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = i * 10'000;
    zero.step(i, at, 7000, 0, 3000).call(at + 7000, at + 10'000, 3000);
    one.step(i, at, 7000, 2000, 1000).call(at + 9000, at + 10'000, 1000);
  }
  one.host_part("aten::linear", 8000);
  const JobVerdict in_operators = judge_job(*build_job({zero.file(), one.file()}));
  EXPECT_EQ(in_operators.host_part, "aten::linear");
  zero.cpu(5000, 0, 1000);
  one.cpu(5000, 0, 3500);
  const JobVerdict verdict = judge_job(*build_job({zero.file(), one.file()}));
  EXPECT_EQ(verdict.kind, VerdictKind::kStraggler);
  EXPECT_EQ(verdict.causes.front().cause, LateCause::kHost);
  EXPECT_EQ(verdict.host_part, "code without events");
  EXPECT_EQ(verdict.host_part_ns, 2'500'000);
  EXPECT_TRUE(verdict.host_part_is_of_step);
}

}  // namespace
}  // namespace lanescope::ranks
