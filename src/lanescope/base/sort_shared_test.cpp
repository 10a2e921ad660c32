#include "lanescope/base/sort_shared.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>

namespace lanescope {
namespace {

std::vector<std::uint32_t> sorted(const std::vector<std::uint32_t>& given, unsigned threads,
                                  std::size_t part_rows) {
  UnsetArray<std::uint32_t> rows(given.size());
  std::copy(given.begin(), given.end(), rows.data());
  sort_shared(rows, given.size(), threads, part_rows);
  return {rows.data(), rows.data() + given.size()};
}

TEST(SortSharedTest, RowsInAnyOrderAreSortedOnAnyNumberOfThreads) {
  std::mt19937 random(1);
  for (const std::size_t count : {0, 1, 7, 8, 9, 100, 1000, 5000}) {
    std::vector<std::uint32_t> expected(count);
    std::iota(expected.begin(), expected.end(), 0u);
    std::vector<std::uint32_t> mixed = expected;
    std::shuffle(mixed.begin(), mixed.end(), random);
    for (const unsigned threads : {1u, 2u, 5u})
      EXPECT_EQ(sorted(mixed, threads, 8), expected) << count << " rows, " << threads << " threads";
    EXPECT_EQ(sorted(expected, 2, 8), expected);
  }
}

// As two threads of a program leave them: each has ids in order, and the ids of both take turns.
TEST(SortSharedTest, SortedRunsThatTakeTurnsAreMerged) {
  std::vector<std::uint32_t> runs, expected(3000);
  std::iota(expected.begin(), expected.end(), 0u);
  for (const std::uint32_t first : {0u, 1u, 2u})
    for (std::uint32_t i = first; i < 3000; i += 3) runs.push_back(i);
  EXPECT_EQ(sorted(runs, 3, 64), expected);
}

TEST(SortSharedTest, RowsAfterTheCountStayOut) {
  UnsetArray<std::uint32_t> rows(100);
  for (std::uint32_t i = 0; i < 100; ++i) rows[i] = 99 - i;
  sort_shared(rows, 90, 2, 8);
  for (std::uint32_t i = 0; i < 90; ++i) EXPECT_EQ(rows[i], 10 + i);
}

}  // namespace
}  // namespace lanescope
