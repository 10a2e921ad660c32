#include "lanescope/model/nearly_sorted.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace lanescope {
namespace {

struct Item {
  int key, place;
  bool operator==(const Item&) const = default;
};
bool by_key(const Item& a, const Item& b) { return a.key < b.key; }

TEST(NearlySortedTest, EqualElementsKeepTheirOrderHoweverMixed) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Item> items(random() % 200);
    const int reach = 1 << random() % 9;  // how far from its place an element may be
    for (int i = 0; i < static_cast<int>(items.size()); ++i)
      items[static_cast<std::size_t>(i)] = {i / 2 + static_cast<int>(random() % reach), i};
    std::vector<Item> expected = items;
    std::stable_sort(expected.begin(), expected.end(), by_key);
    sort_nearly_sorted(items.begin(), items.end(), by_key);
    EXPECT_EQ(items, expected) << round;
  }
}

TEST(NearlySortedTest, NeighboursThatChangedPlacesCostOnePass) {
  std::vector<int> items(10000);
  std::iota(items.begin(), items.end(), 0);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) std::swap(items[i], items[i + 1]);
  int comparisons = 0;
  sort_nearly_sorted(items.begin(), items.end(), [&](int a, int b) {
    ++comparisons;
    return a < b;
  });
  EXPECT_TRUE(std::is_sorted(items.begin(), items.end()));
  // One an element, and one more for each of the 5000 that moved, except the first.
  EXPECT_EQ(comparisons, 9999 + 4999);
}

TEST(NearlySortedTest, TheReverseOrderIsNotQuadratic) {
  std::vector<int> items(20000);
  std::iota(items.rbegin(), items.rend(), 0);
  long comparisons = 0;
  sort_nearly_sorted(items.begin(), items.end(), [&](int a, int b) {
    ++comparisons;
    return a < b;
  });
  EXPECT_TRUE(std::is_sorted(items.begin(), items.end()));
  EXPECT_LT(comparisons, 40 * 20000);
}

TEST(NearlySortedTest, TimesSaturateInsteadOfWrapping) {
  EXPECT_EQ(saturating_end(5, 7), 12);
  EXPECT_EQ(saturating_end(INT64_MAX - 1, 7), INT64_MAX);
  EXPECT_EQ(saturating_length(5, 12), 7);
  EXPECT_EQ(saturating_length(INT64_MIN, 12), INT64_MAX);
}

}  // namespace
}  // namespace lanescope
