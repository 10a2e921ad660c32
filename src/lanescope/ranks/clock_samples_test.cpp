#include "lanescope/ranks/clock_samples.h"

#include <gtest/gtest.h>

#include <vector>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_helpers_test.h"

namespace lanescope::ranks {
namespace {

struct Row {
  std::int64_t apart_ns = 0, together_ns = 0;
};

// Ten rows: the shorter half is eight, five of 10 ns and three of 30; the median of these is 10 ns.
TEST(ClockSamplesTest, TheShorterHalfIsOfOneLength) {
  std::vector<Row> rows;
  for (const std::int64_t i : {0, 1, 2, 3, 4}) {
    rows.push_back({i, 30});
    rows.push_back({i, 10});
  }
  keep_shortest(rows);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows.back().together_ns, 10);
  keep_shortest(rows);
  EXPECT_EQ(rows.size(), 5u);
}

// 12 ns later in collectives of 100 ns, 22 ns in those of 200: a tenth of the length, and 2 ns that no
// length explains.
TEST(ClockSamplesTest, TheLineSaysHowLatenessGrowsWithLength) {
  std::vector<Row> rows;
  for (int i = 0; i < 6; ++i) {
    rows.push_back({12, 100});
    rows.push_back({22, 200});
  }
  const LeavingLine line = fit_leaving_line(rows);
  EXPECT_TRUE(line.known);
  EXPECT_DOUBLE_EQ(line.slope, 0.1);
  EXPECT_NEAR(line.error, 0, 1e-12);
}

// Lateness alternates by 1 ns around 10 and 20 ns: the squares left are 12, their number 12 - 2, and those of
// the lengths 12 x 50 x 50. Error: sqrt(12 / 10 / 30000).
TEST(ClockSamplesTest, TheLinesErrorIsTheStandardError) {
  std::vector<Row> rows;
  for (int i = 0; i < 6; ++i) {
    rows.push_back({i % 2 == 0 ? 9 : 11, 100});
    rows.push_back({i % 2 == 0 ? 19 : 21, 200});
  }
  EXPECT_NEAR(fit_leaving_line(rows).error, std::sqrt(12.0 / 10 / 30000), 1e-12);
}

TEST(ClockSamplesTest, OneLengthOrFewCollectivesHaveNoLine) {
  std::vector<Row> rows(20, Row{5, 100});
  EXPECT_FALSE(fit_leaving_line(rows).known);
  rows.resize(10);
  rows.push_back({9, 300});
  EXPECT_FALSE(fit_leaving_line(rows).known);
  // 95 and 105: the standard deviation is 5 % of the mean.
  rows.clear();
  for (const std::int64_t i : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
    rows.push_back({i, 95});
    rows.push_back({i, 105});
  }
  EXPECT_FALSE(fit_leaving_line(rows).known);
}

// Rank 1 leaves later by a tenth: by 16 us in collectives of 160 us, by 32 us in those of 320. From the shorter
// ones alone the offset would be 5016 us. By the line, 16 us of it may be lateness, give or take the least
// error of 5 us; by its share of the length it is at most 17.777 us. So lateness lies between -5 and 17.777 us:
// 6.388 us are taken off the offset, and half of that range, 11.388 us, is the error. The truth is 5000 us.
TEST(ClockSamplesTest, LatenessThatGrowsWithLengthIsTakenOffTheOffset) {
  DrawnRank zero(0, 2), one(1, 2, 5000);
  for (std::int64_t i = 0; i < 12; ++i) {
    const std::int64_t at = i * 2000;
    zero.step(i, at, 600, 0, 1000).call(at + 600, at + 760, 160).call(at + 1000, at + 1320, 320);
    one.step(i, at, 600, 0, 1000).call(at + 600, at + 776, 176).call(at + 1000, at + 1352, 352);
  }
  const Result<Job> job = build_job({zero.file(), one.file()});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->clocks[1].offset_ns, 5'009'612);
  EXPECT_EQ(job->clocks[1].error_ns, 11'388);
}

TEST(ClockSamplesTest, OriginsThatNoClockHasCountAsEqual) {
  EXPECT_EQ(clock_offset_ns(1'000, 400, 7), 607);
  EXPECT_EQ(clock_offset_ns(INT64_MAX, -5, 7), 7);
  EXPECT_EQ(clock_offset_ns(INT64_MAX, 0, 7), 7);
}

}  // namespace
}  // namespace lanescope::ranks
