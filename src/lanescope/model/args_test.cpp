#include "lanescope/model/args_builder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace lanescope {
namespace {

TEST(ArgsTest, EventsWithTheSameKeysShareOneShape) {
  ArgsBuilder table;
  const StringId key{3};
  ArgsId ids[2];
  for (int i = 0; i < 2; ++i) {
    table.begin();
    table.add_int(key, ArgKey::kCorrelation, 40 + i);
    ids[i] = table.end();
  }
  EXPECT_EQ(table.shape_count(), 1u);
  EXPECT_EQ(table.view(ids[0]).integer(ArgKey::kCorrelation), 40);
  EXPECT_EQ(table.view(ids[1]).integer(ArgKey::kCorrelation), 41);
  EXPECT_FALSE(table.view(ids[1]).integer(ArgKey::kStream));
}

TEST(ArgsTest, IntegersKeepAll64Bits) {
  ArgsBuilder table;
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{INT32_MIN}, std::int64_t{INT32_MAX} + 1,
        std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    table.begin();
    table.add_int(StringId{0}, ArgKey::kBytes, value);
    EXPECT_EQ(table.view(table.end()).integer(ArgKey::kBytes), value);
  }
}

TEST(ArgsTest, NoFieldsIsNoArgs) {
  ArgsBuilder table;
  table.begin();
  EXPECT_EQ(table.end(), kNone<ArgsId>);
  EXPECT_TRUE(table.view(kNone<ArgsId>).empty());
}

TEST(ArgsTest, EverySpellingOfAKeyIsFound) {
  EXPECT_EQ(arg_key("external id"), ArgKey::kExternalId);
  EXPECT_EQ(arg_key("External id"), ArgKey::kExternalId);
  EXPECT_EQ(arg_key("no such key"), ArgKey::kCount);
  for (std::size_t i = 0; i < kArgKeyCount; ++i)
    EXPECT_FALSE(arg_key_text(static_cast<ArgKey>(i)).empty()) << i;
}

}  // namespace
}  // namespace lanescope
