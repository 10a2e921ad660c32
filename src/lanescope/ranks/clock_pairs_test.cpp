#include "lanescope/ranks/clock_pairs.h"

#include <gtest/gtest.h>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_helpers_test.h"

namespace lanescope::ranks {
namespace {

// Ranks 0 - 1 - 2 send each other 12 times in each direction, `apart_us` between a send's end and that of its
// receive. The receiver is there 100 us before the sender, and a transfer takes 200 us. Clocks of ranks 1
// and 2 are 7 ms and -3 ms away from rank 0's.
Job job_of_three(std::int64_t apart_us, bool both_ways = true) {
  DrawnRank ranks[] = {{0, 3}, {1, 3, 7000}, {2, 3, -3000}};
  for (std::size_t rank = 0; rank < 3; ++rank)
    for (std::int64_t i = 0; i < 4; ++i) ranks[rank].step(i, i * 10'000, 5000, 0, 1000);
  const auto send = [&](std::size_t from, std::size_t to, std::int64_t at) {
    const std::string group = from + to == 1 ? "a" : "b";
    ranks[from].in_group(group, 2).call(at, at + 200, 200, 1000, -1, "send");
    ranks[to].in_group(group, 2).call(at - 100, at + 200 + apart_us, 300, 1000, -1, "recv");
  };
  for (std::int64_t i = 0; i < 12; ++i) {
    send(0, 1, 30'000 + i * 4000);
    send(1, 2, 31'000 + i * 4000);
    if (both_ways) send(2, 1, 32'000 + i * 4000);
    if (both_ways) send(1, 0, 33'000 + i * 4000);
  }
  std::vector<RankFile> files;
  for (const DrawnRank& rank : ranks) files.push_back(rank.file());
  return *build_job(std::move(files));
}

// A receive's end is 200 us after its send's begin, and a send begins 200 us before its receive ends: so the
// offset lies within 200 us of the truth for certain, and 4 us more where the receiver ends later.
TEST(ClockPairsTest, SendsInBothDirectionsGiveTheOffset) {
  const Job job = job_of_three(4);
  EXPECT_TRUE(job.clocks[1].known && job.clocks[1].by_pairs);
  EXPECT_EQ(job.clocks[1].offset_ns, 7'000'000);
  EXPECT_EQ(job.clocks[1].highest_ns, 7'204'000);
  EXPECT_EQ(job.clocks[1].lowest_ns, 6'796'000);
  // A ninth of 200 us, and half of the 8 us that the two directions differ by.
  EXPECT_EQ(job.clocks[1].error_ns, 22'222 + 4000);
  EXPECT_EQ(job.clocks[1].samples, 24u);
  EXPECT_FALSE(job.clocks[1].contradicts);
}

TEST(ClockPairsTest, ANeighboursErrorIsAdded) {
  const Job job = job_of_three(4);
  EXPECT_TRUE(job.clocks[2].known);
  EXPECT_EQ(job.clocks[2].offset_ns, -3'000'000);
  EXPECT_EQ(job.clocks[2].error_ns, 2 * (22'222 + 4000));
}

// From one direction the offset could be anything on one side.
TEST(ClockPairsTest, OneDirectionAloneSaysNothing) {
  const Job job = job_of_three(4, false);
  EXPECT_FALSE(job.clocks[1].known);
  EXPECT_FALSE(job.clocks[2].known);
}

}  // namespace
}  // namespace lanescope::ranks
