#include "lanescope/ranks/late_host.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/ranks/job_helpers_test.h"

namespace lanescope::ranks {
namespace {

// Six ranks with steps of 1 ms; the last `late` of them need 200 us longer.
std::string host_of_late_ranks(std::int64_t late, const std::vector<std::string>& hosts,
                               bool by_other_kernels = false) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 6; ++number) {
    DrawnRank rank(number, 6);
    const std::int64_t own = number >= 6 - late ? 900 : 700;
    for (std::int64_t i = 0; i < 5; ++i)
      rank.step(i, i * 1000, own, 0, 1000 - own).call(i * 1000 + own, i * 1000 + 1000, 1000 - own);
    RankSummary summary = rank.summary();
    if (by_other_kernels && number >= 6 - late)
      for (RankStep& step : summary.steps) step.shapes_hash = 1;
    summary.host_name = hosts[static_cast<std::size_t>(number)];
    files.push_back({summary.file, summary});
  }
  const Job job = *build_job(std::move(files));
  return late_host_text(job, judge_job(job));
}

TEST(LateHostTest, TheHostIsNamedIfAllItsRanksAreLateAndNoOther) {
  EXPECT_TRUE(host_of_late_ranks(2, {"a", "a", "b", "b", "c", "c"})
                  .starts_with("Ranks 4 and 5 are all ranks of host c: "));
}

TEST(LateHostTest, NearMissesAreSilent) {
  EXPECT_EQ(host_of_late_ranks(2, {"a", "a", "b", "c", "c", "c"}), "");  // rank 3 is on time
  EXPECT_EQ(host_of_late_ranks(2, {"a", "a", "b", "b", "c", "d"}), "");  // two hosts
  EXPECT_EQ(host_of_late_ranks(1, {"a", "a", "b", "b", "c", "d"}), "");  // one rank
  EXPECT_EQ(host_of_late_ranks(2, {"a", "a", "a", "a", "a", "a"}), "");  // there is one host
  EXPECT_EQ(host_of_late_ranks(2, {"a", "", "b", "b", "c", "c"}), "");   // it may be c
  EXPECT_EQ(host_of_late_ranks(2, {"a", "a", "b", "b", "localhost", "localhost"}), "");
  EXPECT_EQ(host_of_late_ranks(2, {"a", "a", "b", "b", "\033[2J", "\033[2J"}), "");
  EXPECT_EQ(host_of_late_ranks(2, {"a", "a", "b", "b", "c", "c"}, true),
            "");                                                         // they have more work
  EXPECT_EQ(host_of_late_ranks(0, {"a", "a", "b", "b", "c", "c"}), "");  // nobody is late
}

}  // namespace
}  // namespace lanescope::ranks
