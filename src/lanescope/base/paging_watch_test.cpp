#include "lanescope/base/paging_watch.h"

#include <gtest/gtest.h>

namespace lanescope {
namespace {

constexpr std::uint64_t kPagedMiB = 1u << 20;

// A process that does the same in each second. Returns the first second in which it is stuck; -1: in none of 100.
struct EachSecond {
  std::int64_t user_us = 0;
  std::uint64_t disk_mib = 0, asked_mib = 0, mapped_mib = 0;

  PagingSample after(std::uint64_t seconds) const {
    return {.time_ns = 5'000'000'000 + static_cast<std::int64_t>(seconds) * 1'000'000'000,
            .user_ns = static_cast<std::int64_t>(seconds) * user_us * 1'000,
            .disk_bytes = seconds * disk_mib * kPagedMiB,
            .asked_bytes = seconds * asked_mib * kPagedMiB,
            .mapped_bytes = mapped_mib * kPagedMiB};
  }
  int stuck_after() const {
    PagingJudge judge;
    for (int second = 0; second <= 100; ++second)
      if (judge.is_stuck(after(static_cast<std::uint64_t>(second)))) return second;
    return -1;
  }
};

// As measured: 500 MiB a second come from the disk, 250 are mapped. 10 us for each of the 500 would be 5,000.
TEST(PagingJudgeTest, SeesWhatReadsTheSamePagesAgain) {
  EXPECT_EQ((EachSecond{.user_us = 4'000, .disk_mib = 500, .mapped_mib = 250}.stuck_after()), 8);
  EXPECT_EQ((EachSecond{.user_us = 4'999, .disk_mib = 500, .mapped_mib = 250}.stuck_after()), 8);
  EXPECT_EQ((EachSecond{.user_us = 5'000, .disk_mib = 500, .mapped_mib = 250}.stuck_after()), -1);
}

// 3 * 250 MiB come in 19 s at 40 MiB a second (760), not in 18 (720). 10 us for each of the 40 would be 400.
TEST(PagingJudgeTest, ASlowDiskTakesLonger) {
  EXPECT_EQ((EachSecond{.user_us = 399, .disk_mib = 40, .mapped_mib = 250}.stuck_after()), 19);
  EXPECT_EQ((EachSecond{.user_us = 400, .disk_mib = 40, .mapped_mib = 250}.stuck_after()), -1);
}

// 3,000 MiB, each page once: 50 MiB a second would need 60 s for them, and 180 s for three times.
TEST(PagingJudgeTest, AFirstReadOfMuchIsNotStuck) {
  EXPECT_EQ((EachSecond{.user_us = 100, .disk_mib = 50, .mapped_mib = 3000}.stuck_after()), -1);
}

// Bytes of read() are no pages that were pushed out. 500 of 540 MiB: the other 40 are.
TEST(PagingJudgeTest, WhatReadWasAskedForDoesNotCount) {
  EXPECT_EQ((EachSecond{.disk_mib = 500, .asked_mib = 500, .mapped_mib = 250}.stuck_after()), -1);
  EXPECT_EQ((EachSecond{.disk_mib = 100, .asked_mib = 500, .mapped_mib = 250}.stuck_after()), -1);
  EXPECT_EQ((EachSecond{.disk_mib = 540, .asked_mib = 500, .mapped_mib = 250}.stuck_after()), 19);
}

// Until second 3 it computes 42 ms with 1,500 MiB, more than 15. So the 8 s begin anew there.
TEST(PagingJudgeTest, ProgressBeginsAnew) {
  const EachSecond each = {.user_us = 4'000, .disk_mib = 500, .mapped_mib = 250};
  PagingJudge judge;
  for (std::uint64_t second = 0; second <= 12; ++second) {
    PagingSample sample = each.after(second);
    if (second >= 3) sample.user_ns += 30'000'000;
    EXPECT_EQ(judge.is_stuck(sample), second >= 11) << second;
  }
}

// A file of 900 MiB that was mapped for one second only: its pages may all be among those that came.
TEST(PagingJudgeTest, TheMostThatWasMappedCounts) {
  const EachSecond each = {.user_us = 2'000, .disk_mib = 300, .mapped_mib = 100};
  PagingJudge judge;
  for (std::uint64_t second = 0; second <= 10; ++second) {
    PagingSample sample = each.after(second);
    if (second == 4) sample.mapped_bytes = 900 * kPagedMiB;
    EXPECT_EQ(judge.is_stuck(sample), second >= 9) << second;  // 2,700 MiB
  }
}

}  // namespace
}  // namespace lanescope
