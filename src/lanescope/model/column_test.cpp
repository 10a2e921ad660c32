#include "lanescope/model/column.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

namespace lanescope {
namespace {

static_assert(std::is_convertible_v<const Column<int>&, std::span<const int>>);
static_assert(!std::is_convertible_v<const Column<int>&, std::span<int>>);
static_assert(std::is_nothrow_move_constructible_v<Column<int>>);

TEST(ColumnTest, AVectorIsTakenOverWithoutACopy) {
  std::vector<std::int64_t> rows{3, 4, 5};
  rows.reserve(8);
  const std::int64_t* const place = rows.data();
  const Column<std::int64_t> column(std::move(rows));
  EXPECT_EQ(column.data(), place);
  EXPECT_EQ(column.size(), 3u);
  EXPECT_EQ(column.memory_bytes(), 64u);  // the capacity
  EXPECT_EQ(column[1], 4);
  EXPECT_EQ(column.front(), 3);
  EXPECT_EQ(column.back(), 5);
  EXPECT_EQ(column.end() - column.begin(), 3);
}

TEST(ColumnTest, TheOwnerLivesAsLongAsTheLastColumn) {
  const auto memory = std::make_shared<const std::array<int, 4>>(std::array{1, 2, 3, 4});
  const std::weak_ptr<const void> alive = memory;
  Column<int> kept;
  {
    const Column<int> middle({memory->data() + 1, 2}, memory);
    EXPECT_EQ(middle.memory_bytes(), 8u);
    kept = middle;
  }
  EXPECT_EQ(kept.data(), memory->data() + 1);
  EXPECT_EQ(memory.use_count(), 2);
  Column<int> moved = std::move(kept);
  EXPECT_EQ(memory.use_count(), 2);
  EXPECT_TRUE(kept.empty());  // NOLINT(bugprone-use-after-move): what a move leaves is empty
  EXPECT_EQ(kept.data(), nullptr);
  EXPECT_EQ(moved.back(), 3);
  moved = Column<int>();
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(ColumnTest, ColumnsWithEqualRowsAreEqual) {
  const Column<int> column(std::vector<int>{1, 2});
  EXPECT_EQ(column, Column<int>(std::vector<int>{1, 2}));
  EXPECT_NE(column, Column<int>(std::vector<int>{1, 3}));
  EXPECT_NE(column, Column<int>(std::vector<int>{1}));
  EXPECT_EQ(column, (std::vector<int>{1, 2}));
  EXPECT_NE((std::vector<int>{1, 2, 3}), column);
}

TEST(ColumnTest, AnEmptyColumnHasNoRows) {
  const Column<int> none;
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.memory_bytes(), 0u);
  EXPECT_EQ(none.begin(), none.end());
  EXPECT_TRUE(Column<int>(std::vector<int>()).empty());
}

}  // namespace
}  // namespace lanescope
