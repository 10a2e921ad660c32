#include "lanescope/base/json_value.h"

#include <gtest/gtest.h>

#include <string>

namespace lanescope {
namespace {

TEST(JsonValueTest, ReadsShapesAsNestedIntegers) {
  const auto value = parse_json("[[4, 8], [], [-1]]");
  ASSERT_TRUE(value);
  ASSERT_EQ(value->items.size(), 3u);
  EXPECT_EQ(value->items[0].items[1].integer, 8);
  EXPECT_TRUE(value->items[1].items.empty());
  EXPECT_EQ(value->items[2].items[0].integer, -1);
}

TEST(JsonValueTest, TheLastOfEqualNamesWins) {
  const auto value = parse_json(R"({"id": 0, "name": "NVIDIA H200", "id": 3})");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->find("id")->integer, 3);
  EXPECT_EQ(value->find("name")->text, "NVIDIA H200");
  EXPECT_EQ(value->find("numSms"), nullptr);
}

TEST(JsonValueTest, EscapesBecomeUtf8AndLoneSurrogatesTheReplacementCharacter) {
  EXPECT_EQ(parse_json(R"("a\"\\\nA\u00e9\ud83d\ude00\ud800x")")->text,
            "a\"\\\nA\xC3\xA9\xF0\x9F\x98\x80\xEF\xBF\xBDx");
}

TEST(JsonValueTest, NumbersKeepIntegersApartFromReals) {
  EXPECT_EQ(parse_json("9223372036854775807")->integer, INT64_MAX);
  EXPECT_FALSE(parse_json("1e3")->integer);
  EXPECT_EQ(parse_json("1e3")->number, 1000.0);
  EXPECT_FALSE(parse_json("92233720368547758070")->integer);
  EXPECT_TRUE(parse_json("[NaN, -Infinity]"));
}

TEST(JsonValueTest, WhatIsNotOneValueGivesNothing) {
  for (const char* text :
       {"", "[", "[1,]", "{\"a\"}", "{\"a\":}", "1 2", "tru", "\"open", "-", "{1:2}"})
    EXPECT_FALSE(parse_json(text)) << text;
}

TEST(JsonValueTest, DepthIsBounded) {
  EXPECT_TRUE(parse_json(std::string(60, '[') + std::string(60, ']')));
  EXPECT_FALSE(parse_json(std::string(100000, '[')));
}

}  // namespace
}  // namespace lanescope
