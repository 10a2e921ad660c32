#include "lanescope/base/sort_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace lanescope {
namespace {

struct RankedRow {
  int rank;
  std::size_t place;
  bool operator==(const RankedRow&) const = default;
};

TEST(SortRows, EqualsAStableSortForEveryLength) {
  std::mt19937 random(7);
  for (std::size_t count = 0; count < 300; ++count) {
    std::vector<RankedRow> rows;
    for (std::size_t i = 0; i < count; ++i) rows.push_back({static_cast<int>(random() % 20), i});
    std::vector<RankedRow> expected = rows;
    const auto by_rank = [](const RankedRow& a, const RankedRow& b) { return a.rank < b.rank; };
    std::stable_sort(expected.begin(), expected.end(), by_rank);
    sort_rows(rows.begin(), rows.end(), by_rank);
    ASSERT_EQ(rows, expected) << count;
  }
}

TEST(SortRows, MovesRowsThatCannotBeCopied) {
  std::vector<std::unique_ptr<std::string>> rows;
  for (const char* text : {"c", "a", "d", "b"}) rows.push_back(std::make_unique<std::string>(text));
  sort_rows(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return *a < *b; });
  std::string joined;
  for (const auto& row : rows) joined += *row;
  EXPECT_EQ(joined, "abcd");
}

TEST(SortRows, SortsAPartOfAnArrayByAFunction) {
  std::array<int, 5> numbers{9, 3, 2, 1, 0};
  bool (*const less)(const int&, const int&) = [](const int& a, const int& b) { return a < b; };
  sort_rows(numbers.begin() + 1, numbers.begin() + 4, less);
  EXPECT_EQ(numbers, (std::array<int, 5>{9, 1, 2, 3, 0}));
}

TEST(SortRows, ComparesRowsInOrderOnce) {
  const std::vector<int> in_order{1, 2, 2, 3};
  std::vector<int> rows = in_order;
  int comparisons = 0;
  sort_rows(rows.begin(), rows.end(), [&](int a, int b) {
    ++comparisons;
    return a < b;
  });
  EXPECT_EQ(rows, in_order);
  EXPECT_EQ(comparisons, 3);
}

}  // namespace
}  // namespace lanescope
