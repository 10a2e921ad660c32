// Which groups serve one purpose, and what each purpose costs.
#include "lanescope/ranks/group_times.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/ranks/job_helpers_test.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {
namespace {

MatchedGroup group(std::string name, std::string description, std::vector<std::uint32_t> ranks) {
  MatchedGroup out;
  out.name = std::move(name);
  out.description = std::move(description);
  out.size = static_cast<std::int64_t>(ranks.size());
  out.ranks = std::move(ranks);
  return out;
}

TEST(GroupTimesTest, ADescriptionIsAPurpose) {
  Matching matching;
  matching.groups = {group("1", "mesh_tp", {0, 1}), group("2", "mesh_dp", {0, 2}),
                     group("3", "mesh_tp", {2, 3}), group("4", "mesh_dp", {1, 3})};
  EXPECT_EQ(find_purposes(matching), (std::vector<std::uint32_t>{0, 1, 0, 1}));
}

// Groups of one purpose share no rank; those of another size are of another purpose.
TEST(GroupTimesTest, WithoutDescriptionsRanksTellThePurposes) {
  Matching matching;
  matching.groups = {group("10", "undefined", {0, 2}), group("11", "", {1, 3}),
                     group("8", "", {0, 1}), group("9", "undefined", {2, 3}),
                     group("", "", {0, 1, 2, 3})};
  EXPECT_EQ(find_purposes(matching), (std::vector<std::uint32_t>{2, 2, 1, 1, 0}));
}

TEST(GroupTimesTest, SumsAreMeansOfAllRanksAndSteps) {
  Matching matching;
  matching.groups = {group("1", "tp", {0, 1}), group("2", "tp", {2, 3}),
                     group("3", "dp", {0, 1, 2, 3})};
  // rank, group, step, calls, exposed, wait: four ranks, one step.
  const std::vector<GroupStep> rows = {
      {0, 0, 0, 6, 800, 200},   {1, 0, 0, 6, 600, 0}, {2, 1, 0, 6, 600, 0}, {3, 1, 0, 5, 600, 0},
      {3, 1, 0, 1, 200, 0},  // of another worker
      {0, 2, 0, 1, 4000, 3900}, {1, 2, 0, 1, 100, 0}, {2, 2, 0, 1, 100, 0}, {3, 2, 0, 1, 100, 0}};
  const std::vector<GroupTimes> sums = sum_groups(matching, rows, 4);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(groups_name(sums[0]), "tp (2 groups of 2 ranks)");
  EXPECT_EQ(sums[0].calls, 6u);
  EXPECT_EQ(sums[0].exposed_ns, 700);
  EXPECT_EQ(sums[0].exposed_wait_ns, 50);
  EXPECT_EQ(groups_name(sums[1]), "dp (4 ranks)");
  EXPECT_EQ(sums[1].calls, 1u);
  EXPECT_EQ(sums[1].exposed_ns, 1075);
  EXPECT_EQ(sums[1].transfer_ns(), 100);
}

TEST(GroupTimesTest, NamesOfFilesAreOnlyPrintedIfTheyArePlain) {
  GroupTimes groups;
  groups.name = "\033[2J<b>";
  groups.is_described = true;
  groups.groups = 1;
  groups.size = 8;
  EXPECT_EQ(groups_name(groups), "a group (8 ranks)");
  groups.name = "3";
  groups.is_described = false;
  EXPECT_EQ(groups_name(groups), "group 3 (8 ranks)");
}

// Two ranks, four steps of 1 ms: `pairs_us` of the group "1" and `job_us` of the job's group, both exposed.
JobVerdict judged(std::int64_t pairs_us, std::int64_t job_us, Job* job) {
  std::vector<RankFile> files;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    DrawnRank drawn(rank, 2);
    for (std::int64_t step = 0; step < 4; ++step) {
      const std::int64_t at = step * 1000, mid = at + 1000 - pairs_us - job_us;
      drawn.step(step + 10, at, 1000 - pairs_us - job_us, 0, pairs_us + job_us);
      drawn.in_group("1", 2).call(mid, mid + pairs_us, pairs_us);
      drawn.in_group("0", 2).call(mid + pairs_us, at + 1000, job_us, 5000);
    }
    files.push_back(drawn.file());
  }
  auto built = build_job(std::move(files));
  EXPECT_TRUE(built);
  *job = std::move(*built);
  return judge_job(*job);
}

bool names_groups(const JobVerdict& verdict, std::string_view text) {
  for (const JobNote& note : verdict.notes)
    if (note.kind == NoteKind::kGroupNotHidden) return note.text.find(text) != std::string::npos;
  return false;
}

TEST(GroupTimesTest, ThePurposeWithMostExposedTransferIsNamed) {
  Job job;
  const JobVerdict verdict = judged(200, 50, &job);
  ASSERT_EQ(job.groups.size(), 2u);
  EXPECT_EQ(job.groups[0].exposed_ns, 200'000);
  EXPECT_EQ(job.groups[0].calls, 1u);
  EXPECT_TRUE(names_groups(verdict, "Of the 0.25 ms"));
  EXPECT_TRUE(names_groups(verdict, "0.20 ms are in group 1 (2 ranks), in 1 call."));
}

TEST(GroupTimesTest, EqualPurposesAndSmallOnesAreNotNamed) {
  Job job;
  EXPECT_FALSE(names_groups(judged(130, 120, &job), ""));  // 52 % of it
  EXPECT_FALSE(names_groups(judged(80, 10, &job), ""));    // 8 % of a step
}

}  // namespace
}  // namespace lanescope::ranks
