#include "lanescope/model/sorted_runs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lanescope {
namespace {

using Row = std::pair<int, int>;  // what it is sorted by, and where it was

bool less(const Row& a, const Row& b) { return a.first < b.first; }

void expect_sorted(const std::vector<int>& keys, const std::string& what) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < keys.size(); ++i) rows.emplace_back(keys[i], static_cast<int>(i));
  std::vector<Row> expected = rows;
  std::stable_sort(expected.begin(), expected.end(), less);
  sort_runs(rows.begin(), rows.end(), less);
  ASSERT_EQ(rows, expected) << what;
}

TEST(SortedRunsTest, OrderIsThatOfAStableSort) {
  expect_sorted({}, "nothing");
  expect_sorted({1}, "one");
  expect_sorted({1, 2, 4, 3, 5, 2, 3}, "two runs, and a row that is late");
  expect_sorted({3, 2, 1}, "backwards");
  expect_sorted({2, 2, 1, 1, 2, 1}, "equal rows");
  // From rows in order to rows in any order: every run of `length` begins anew, and neighbours swap.
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const std::size_t length = 1 + random() % 200;
    std::vector<int> keys;
    for (std::size_t i = 0; i < random() % 3000; ++i)
      keys.push_back(static_cast<int>(i % length * (1 + seed % 3) + random() % (1 + seed % 40)));
    expect_sorted(keys, "seed " + std::to_string(seed));
  }
}

// Each row is compared a few times, and not log n times.
TEST(SortedRunsTest, TwoRunsTakeOneMerge) {
  std::vector<int> keys;
  for (int run = 0; run < 2; ++run)
    for (int i = 0; i < 10'000; ++i) keys.push_back(2 * (i ^ 1) + run);  // neighbours swapped
  std::size_t compared = 0;
  sort_runs(keys.begin(), keys.end(), [&](int a, int b) {
    ++compared;
    return a < b;
  });
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_LT(compared, 4 * keys.size());
}

// Parts of a recording that follow each other, with three runs each: every row is merged with its part alone.
TEST(SortedRunsTest, PartsThatFollowEachOtherAreMergedAlone) {
  constexpr int kParts = 100, kRows = 5'000;
  std::vector<int> keys;
  for (int part = 0; part < kParts; ++part)
    for (int run = 0; run < 3; ++run)
      for (int i = 0; i < kRows; ++i) keys.push_back((part * kRows + i) * 3 + run);
  std::size_t compared = 0;
  const auto counted = [&](int a, int b) {
    ++compared;
    return a < b;
  };
  std::vector<int> rows = keys;
  sort_runs(rows.begin(), rows.end(), counted);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_LT(compared, 5 * rows.size());
  rows = keys;
  EXPECT_LE(order_into_runs(rows.begin(), rows.end(), counted).size(), 65u);
}

}  // namespace
}  // namespace lanescope
