// Notes on communication: where each fires, and the near miss that is silent.
#include "lanescope/ranks/job_notes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/ranks/job_helpers_test.h"

namespace lanescope::ranks {
namespace {

// Eight ranks in four groups of two. Each group moves 4000 bytes in 100 us, which is 0.04 GB/s of bus
// bandwidth; the ranks 4 and 5 need `slow_us`. Then all eight meet. `hosts`: of each group.
JobVerdict job_of_groups(std::int64_t slow_us, const std::vector<std::string>& hosts = {}) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 8; ++number) {
    DrawnRank rank(number, 8);
    const std::int64_t group = number / 2;
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t at = i * 1000;
      rank.step(i, at, 500, 0, 500).in_group("tp" + std::to_string(group), 2);
      rank.call(at + 100, at + 100 + (group == 2 ? slow_us : 100), 50);
      rank.in_group("0", 8).call(at + 600, at + 700, 100, 2000);
    }
    RankSummary summary = rank.summary();
    if (!hosts.empty()) summary.host_name = hosts[static_cast<std::size_t>(group)];
    files.push_back({summary.file, summary});
  }
  return judge_job(*build_job(std::move(files)));
}

TEST(JobNotesTest, AGroupWithASlowLinkIsNamed) {
  EXPECT_TRUE(has(job_of_groups(200), NoteKind::kSlowLink, "ranks 4 and 5"));
}

// The near miss: 100 / 130 = 0.77 of the usual bandwidth.
TEST(JobNotesTest, AGroupThatIsALittleSlowerIsNoSlowLink) {
  EXPECT_FALSE(has(job_of_groups(130), NoteKind::kSlowLink, ""));
  EXPECT_FALSE(has(job_of_groups(100), NoteKind::kSlowLink, ""));
}

TEST(JobNotesTest, TheHostOfSlowGroupsIsNamedIfItIsTheirsAlone) {
  EXPECT_TRUE(
      has(job_of_groups(200, {"node1", "node1", "node2", "node3"}), NoteKind::kSlowLink,
          "Every slow group has a rank on host node2, and no other group of that kind has"));
  for (const std::vector<std::string>& hosts :
       {std::vector<std::string>{"node1", "node2", "node2", "node3"},  // a quick group as well
        {"node1", "", "node2", "node3"},                               // it may be node2
        {"node1", "node1", "\033[2J", "node3"}})
    EXPECT_TRUE(
        has(job_of_groups(200, hosts), NoteKind::kSlowLink, "the placement of these ranks"));
}

// Eight ranks; pairs of neighbours sum in 100 us. Other pairs, such as those across hosts, need `other_us`, and one of
// them, of ranks 3 and 4, `slow_us`.
JobVerdict job_of_two_kinds_of_pairs(std::int64_t other_us, std::int64_t slow_us, bool is_named) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 8; ++number) {
    DrawnRank rank(number, 8);
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t at = i * 1000, pair = number / 2, other = (number + 7) % 8 / 2;
      rank.step(i, at, 500, 0, 500).in_group("1" + std::to_string(pair), 2, is_named ? "host" : "");
      rank.call(at + 100, at + 200, 50);
      rank.in_group("2" + std::to_string(other), 2, is_named ? "across" : "");
      rank.call(at + 300, at + 300 + (other == 1 ? slow_us : other_us), 50);
      rank.in_group("0", 8).call(at + 800, at + 900, 100, 2000);
    }
    files.push_back(rank.file());
  }
  return judge_job(*build_job(std::move(files)));
}

// The near miss: all pairs across hosts are equally slow, and no link is.
TEST(JobNotesTest, PairsAreComparedWithPairsOfTheSamePurpose) {
  for (const bool is_named : {false, true}) {
    EXPECT_FALSE(has(job_of_two_kinds_of_pairs(300, 300, is_named), NoteKind::kSlowLink, ""));
    EXPECT_TRUE(has(job_of_two_kinds_of_pairs(150, 300, is_named), NoteKind::kSlowLink,
                    "between ranks 3 and 4 is slow"));
  }
}

// 21 us of 1 ms are more than 2 %, and 19 us are less.
TEST(JobNotesTest, ASlowLinkThatCostsLittleIsNotNamed) {
  const auto job_of = [](std::int64_t usual_us, std::int64_t slow_us) {
    return has(job_of_two_kinds_of_pairs(usual_us, slow_us, true), NoteKind::kSlowLink, "");
  };
  EXPECT_TRUE(job_of(30, 51));   // 21 us
  EXPECT_FALSE(job_of(30, 49));  // 19 us
}

// Two ranks with steps of 1 ms, in which both devices wait for their CPUs; recording cost the CPUs so much.
JobVerdict job_that_waits_for_cpus(std::int64_t idle_us, std::int64_t recording_us = 0) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 2; ++number) {
    DrawnRank rank(number, 2);
    for (std::int64_t i = 0; i < 4; ++i)
      rank.step(i, i * 1000, 900 - idle_us, idle_us, 100)
          .call(i * 1000 + 900, i * 1000 + 1000, 100);
    RankSummary summary = rank.summary();
    for (RankStep& step : summary.steps) step.host_recording_ns = recording_us * 1000;
    files.push_back({summary.file, summary});
  }
  return judge_job(*build_job(std::move(files)));
}

TEST(JobNotesTest, RanksWhoseDevicesWaitForTheirCpusAreNamed) {
  EXPECT_TRUE(
      has(job_that_waits_for_cpus(200), NoteKind::kCpuBound,
          "No GPU has work for 0.20 ms of a step (20 %), because the CPUs are late with it. "
          "lanescope explain says what the CPUs do then."));
  // 1.6 x 50 us may be the profiler's. Of the other 920 us 139 are more than 15 %.
  EXPECT_TRUE(has(job_that_waits_for_cpus(219, 50), NoteKind::kCpuBound,
                  "; up to 0.08 ms of that may be the profiler's own work. "));
}

// In each step one of the two CPUs, in turn or always the second one, makes its GPU wait `idle` us, or gives it that much more work; the other
// rank waits for it.
JobVerdict job_with_a_late_rank(std::int64_t idle_us, std::int64_t work_us, bool in_turn = true) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 2; ++number) {
    DrawnRank rank(number, 2);
    const std::int64_t late = idle_us + work_us;
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t at = i * 1000;
      if (number == (in_turn ? i % 2 : 1))
        rank.step(i, at, 500 + work_us, idle_us, 500 - late)
            .call(at + 500 + late, at + 1000, 500 - late);
      else
        rank.step(i, at, 500, 0, 500).call(at + 500, at + 1000, 500);
    }
    files.push_back(rank.file());
  }
  return judge_job(*build_job(std::move(files)));
}

TEST(JobNotesTest, CpusThatAreLateInTurnMakeAllDevicesWait) {
  EXPECT_TRUE(has(job_with_a_late_rank(400, 0), NoteKind::kCpuBound,
                  "No GPU has work for 0.40 ms of a step (40 %)"));
  EXPECT_FALSE(has(job_with_a_late_rank(0, 400), NoteKind::kCpuBound, ""));
  // Then it is a straggler, and the verdict says why.
  EXPECT_FALSE(has(job_with_a_late_rank(400, 0, false), NoteKind::kCpuBound, ""));
}

TEST(JobNotesTest, ShortWaitsForCpusAndThoseThatTheProfilerMayHaveMadeAreNotNamed) {
  EXPECT_FALSE(has(job_that_waits_for_cpus(149), NoteKind::kCpuBound, ""));
  EXPECT_FALSE(has(job_that_waits_for_cpus(217, 50), NoteKind::kCpuBound, ""));
}

// Two ranks; in each of four steps of 10 ms `calls` collectives of so many elements of 4 bytes, one after the other,
// of 20 us each, of which the first `hidden` run next to computation.
JobVerdict job_of_calls(std::int64_t calls, std::int64_t elements, std::int64_t hidden = 0) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 2; ++number) {
    DrawnRank rank(number, 2);
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t at = i * 10'000, exposed = (calls - hidden) * 20;
      rank.step(i, at, 10'000 - exposed, 0, exposed);
      for (std::int64_t k = 0; k < calls; ++k)
        rank.call(at + 10'000 - (calls - k) * 20, at + 10'000 - (calls - k - 1) * 20,
                  k < hidden ? 0 : 20, elements);
    }
    RankSummary summary = rank.summary();
    for (RankStep& step : summary.steps) step.hidden_ns = hidden * 20'000;
    files.push_back({summary.file, summary});
  }
  return judge_job(*build_job(std::move(files)));
}

// 512 x 512 weights and their 512 biases, 4 bytes each: 1,050,624 bytes, a bucket of DDP with a limit of 1 MiB.
TEST(JobNotesTest, ManySmallCollectivesAreNamedAndBucketsOfOneMebibyteAreSmall) {
  EXPECT_TRUE(has(job_of_calls(30, 1000), NoteKind::kSmallCollectives,
                  "30 collectives of less than 2 MiB, which cost 0.60 ms"));
  EXPECT_TRUE(has(job_of_calls(30, 512 * 513), NoteKind::kSmallCollectives, ""));
  EXPECT_TRUE(has(job_of_calls(30, (2 << 20) / 4 - 1), NoteKind::kSmallCollectives, ""));
}

TEST(JobNotesTest, FewOrLargeOrHiddenCollectivesAreNotNamedAsSmall) {
  EXPECT_FALSE(has(job_of_calls(19, 1000), NoteKind::kSmallCollectives, ""));
  EXPECT_FALSE(has(job_of_calls(30, (2 << 20) / 4), NoteKind::kSmallCollectives, ""));
  EXPECT_FALSE(
      has(job_of_calls(30, 1000, 21), NoteKind::kSmallCollectives, ""));  // 1.8 % of a step
}

// 3 % of a step, none of it hidden; with a third of it hidden, 10 % of a step counts.
TEST(JobNotesTest, CommunicationThatNothingHidesIsNamedByItsShare) {
  EXPECT_TRUE(has(job_of_calls(15, 1000), NoteKind::kNotHidden, "hardly any of it overlaps"));
  EXPECT_FALSE(has(job_of_calls(14, 1000), NoteKind::kNotHidden, ""));
  EXPECT_TRUE(has(job_of_calls(75, 1000, 25), NoteKind::kNotHidden, "more overlap"));
  EXPECT_FALSE(has(job_of_calls(73, 1000, 24), NoteKind::kNotHidden, ""));
}

}  // namespace
}  // namespace lanescope::ranks
