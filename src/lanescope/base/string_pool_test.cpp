#include "lanescope/base/string_pool.h"

#include <gtest/gtest.h>

#include <string>

namespace lanescope {
namespace {

TEST(StringPoolTest, EqualTextsShareOneIdAndIdsCountUp) {
  StringPool pool;
  EXPECT_EQ(raw(pool.intern("aten::mm")), 0u);
  EXPECT_EQ(raw(pool.intern("")), 1u);
  EXPECT_EQ(raw(pool.intern("aten::mm")), 0u);
  EXPECT_EQ(pool.view(StringId{0}), "aten::mm");
  EXPECT_EQ(pool.find("absent"), kNone<StringId>);
}

TEST(StringPoolTest, ViewsSurviveGrowthAndMoves) {
  StringPool pool;
  for (int i = 0; i < 50000; ++i) pool.intern("name " + std::to_string(i));
  const std::string large(200000, 'x');
  const StringId large_id = pool.intern(large);
  const std::string_view early = pool.view(StringId{17});
  StringPool moved = std::move(pool);
  EXPECT_EQ(early, "name 17");
  EXPECT_EQ(moved.view(large_id), large);
  for (int i = 0; i < 50000; ++i)
    ASSERT_EQ(raw(moved.intern("name " + std::to_string(i))), static_cast<unsigned>(i));
}

TEST(StringPoolTest, TextsWithZeroBytesDiffer) {
  StringPool pool;
  using namespace std::string_view_literals;
  EXPECT_NE(pool.intern("a\0b"sv), pool.intern("a\0c"sv));
  EXPECT_NE(pool.intern("a"sv), pool.intern("a\0"sv));
}

}  // namespace
}  // namespace lanescope
