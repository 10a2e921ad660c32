#include "lanescope/ranks/host_clocks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_helpers_test.h"

namespace lanescope::ranks {
namespace {

// All-reduces of 160 us, from which rank 1 comes 10 us later by its clock; 160 / 9 = 17.777 us of error.
Job job_on(const std::string& host0, const std::string& host1, std::int64_t clock_us = 10,
           std::uint64_t devices = 1) {
  DrawnRank zero(0, 2), one(1, 2, clock_us);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = i * 1000;
    zero.step(i, at, 840, 0, 160).call(at + 840, at + 1000, 160);
    one.step(i, at, 840, 0, 160).call(at + 840, at + 1000, 160);
  }
  RankFile files[] = {zero.file(), one.file()};
  std::get<RankSummary>(files[0].content).host_name = host0;
  std::get<RankSummary>(files[1].content).host_name = host1;
  for (RankFile& file : files) std::get<RankSummary>(file.content).device_count = devices;
  return *build_job({files[0], files[1]});
}

TEST(HostClocksTest, RanksOfOneHostShareItsClock) {
  const Job job = job_on("node7", "node7");
  EXPECT_EQ(job.clocks[1].offset_ns, 0);
  EXPECT_EQ(job.clocks[1].error_ns, 5'000);
  EXPECT_EQ(job.clocks[1].aligned(1'000), 1'000);
}

TEST(HostClocksTest, OtherHostsAndUnknownOnesDoNot) {
  for (const auto& [a, b] :
       {std::pair("node7", "node8"), std::pair("", ""), std::pair("localhost", "localhost")}) {
    const Job job = job_on(a, b);
    EXPECT_EQ(job.clocks[1].offset_ns, 10'000);
    EXPECT_EQ(job.clocks[1].error_ns, 17'777);
  }
}

// 100 us apart: more than the error, so one of the names is wrong.
TEST(HostClocksTest, ANameThatTheCollectivesContradictIsNotBelieved) {
  const Job job = job_on("node7", "node7", 100);
  EXPECT_EQ(job.clocks[1].offset_ns, 100'000);
  EXPECT_EQ(job.clocks[1].error_ns, 17'777);
}

// CPU threads leave a collective when they are scheduled, so 100 us say little: the name is believed as long as
// no collective excludes it. By 1,200 us rank 1 would leave before rank 0 arrives.
TEST(HostClocksTest, OnCpusTheNameIsBelievedUnlessACollectiveExcludesIt) {
  const Job job = job_on("node7", "node7", 100, 0);
  EXPECT_EQ(job.clocks[1].offset_ns, 0);
  EXPECT_EQ(job.clocks[1].error_ns, 5'000);
  const Job far = job_on("node7", "node7", 1'200, 0);
  EXPECT_EQ(far.clocks[1].offset_ns, 1'200'000);
}

// Rank 1 leaves 160 us after rank 0 arrives and arrives 160 us before rank 0 leaves: the error is what that leaves
// open, not a ninth of it.
TEST(HostClocksTest, OnCpusTheErrorIsWhatIsCertain) {
  const Job job = job_on("node7", "node8", 10, 0);
  EXPECT_EQ(job.clocks[1].offset_ns, 10'000);
  EXPECT_EQ(job.clocks[1].error_ns, 160'000);
}

// Ranks 1 and 2 of a host without the reference: the lower of their offsets, and the smaller error.
TEST(HostClocksTest, AHostWithoutTheReferenceHasOneOffsetToo) {
  RankClock reference, one, two;
  reference.known = one.known = two.known = true;
  one.offset_ns = one.shift_ns = 7'004'000;
  two.offset_ns = two.shift_ns = 7'000'000;
  one.error_ns = 9'000;
  two.error_ns = 12'000;
  std::vector<RankClock> clocks = {reference, one, two};
  SingleWorker worker;
  share_host_clocks({"a", "b", "b"}, {false, false, false}, worker, clocks);
  EXPECT_EQ(clocks[1].offset_ns, 7'000'000);
  EXPECT_EQ(clocks[1].shift_ns, 7'000'000);
  EXPECT_EQ(clocks[2].offset_ns, 7'000'000);
  EXPECT_EQ(clocks[2].error_ns, 9'000);
}

// Two ranks sum so many elements of 4 bytes, so long.
std::int64_t error_ns(std::int64_t elements, std::int64_t us) {
  DrawnRank zero(0, 2), one(1, 2, 10);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = i * 1000;
    zero.step(i, at, 900, 0, us).call(at + 900, at + 900 + us, us, elements);
    one.step(i, at, 900, 0, us).call(at + 900, at + 900 + us, us, elements);
  }
  return build_job({zero.file(), one.file()})->clocks[1].error_ns;
}

// 7/4 of 100 us; 2,052 bytes are not small: 100 us / 9; 40 us are quick: 5 us.
TEST(HostClocksTest, SmallMessagesOverASlowNetworkSayLittleOfClocks) {
  EXPECT_EQ(error_ns(512, 100), 175'000);
  EXPECT_EQ(error_ns(513, 100), 11'111);
  EXPECT_EQ(error_ns(512, 40), 5'000);
}

// Ranks 2 and 3 sum 4000 bytes in 100 us: 0.04 GB/s. Small messages of 100 us leave their clocks 175 us unsure, which is nothing to
// a pair that has one clock.
TEST(HostClocksTest, TheRateOfRanksOfOneHostNeedsNoOtherClock) {
  for (const bool named : {true, false}) {
    std::vector<RankFile> files;
    for (std::int64_t number = 0; number < 4; ++number) {
      DrawnRank rank(number, 4);
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t at = i * 1000;
        rank.step(i, at, 500, 0, 200)
            .in_group(number < 2 ? "a" : "b", 2)
            .call(at + 500, at + 600, 100);
        rank.in_group("0", 4).call(at + 600, at + 700, 100, 1);
      }
      RankFile file = rank.file();
      if (named) std::get<RankSummary>(file.content).host_name = number < 2 ? "node1" : "node2";
      files.push_back(file);
    }
    const Job job = *build_job(std::move(files));
    EXPECT_EQ(job.clocks[3].error_ns, 175'000);
    double found = -1;
    for (const CollectiveRate& rate : job.rates)
      if (job.matching.groups[rate.group].name == "b") found = rate.bus_bandwidth;
    EXPECT_DOUBLE_EQ(found, named ? 4e7 : 0);
  }
}

}  // namespace
}  // namespace lanescope::ranks
