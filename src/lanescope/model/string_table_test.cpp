#include "lanescope/model/string_table.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace lanescope {
namespace {

StringTable<GrowingColumn> taken_from(StringPool& pool) {
  StringPool::Parts parts = std::move(pool).take();
  return {std::move(parts.bytes), std::move(parts.starts), std::move(parts.slots)};
}

TEST(StringTableTest, HasEachTextOfThePoolByItsIdAndItsText) {
  StringPool pool;
  const std::string large(200000, 'x');
  for (int i = 0; i < 5000; ++i) pool.intern("name " + std::to_string(i));
  pool.intern("");
  pool.intern(large);
  pool.intern(std::string_view("a\0b", 3));
  const StringTable<GrowingColumn> table = taken_from(pool);
  ASSERT_EQ(table.size(), 5003u);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const std::string text = "name " + std::to_string(i);
    ASSERT_EQ(table.view(StringId{i}), text);
    ASSERT_EQ(table.find(text), StringId{i});
  }
  EXPECT_EQ(table.view(StringId{5000}), "");
  EXPECT_EQ(table.find(""), StringId{5000});
  EXPECT_EQ(table.find(large), StringId{5001});
  EXPECT_EQ(table.find(std::string_view("a\0b", 3)), StringId{5002});
  EXPECT_EQ(table.find("a"), kNone<StringId>);
  EXPECT_EQ(table.find("name 5000"), kNone<StringId>);
}

TEST(StringTableTest, ThePoolIsEmptyAfterwards) {
  StringPool pool;
  pool.intern("first");
  EXPECT_EQ(taken_from(pool).size(), 1u);
  EXPECT_EQ(pool.size(), 0u);  // NOLINT(bugprone-use-after-move): take() leaves an empty pool
  EXPECT_EQ(pool.intern("second"), StringId{0});
}

TEST(StringTableTest, ATraceWithoutTextsFindsNone) {
  EXPECT_EQ(StringColumns().size(), 0u);
  EXPECT_EQ(StringColumns().find("any"), kNone<StringId>);
  StringPool pool;
  EXPECT_EQ(taken_from(pool).size(), 0u);
}

}  // namespace
}  // namespace lanescope
