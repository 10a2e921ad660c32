#include "lanescope/base/json_escape.h"

#include <gtest/gtest.h>

namespace lanescope {
namespace {

TEST(JsonEscapeTest, EachEscapeHasItsMeaning) {
  std::string text;
  ASSERT_TRUE(unescape_json(R"(a\"b\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00)", text));
  EXPECT_EQ(text, "a\"b\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(JsonEscapeTest, WhatJsonForbidsIsRefusedOrReplacedByPolicy) {
  std::string text;
  const struct {
    const char *raw, *lenient;
  } kCases[] = {{R"(a\qb)", "aqb"},
                {R"(\ud800x)", "\xEF\xBF\xBDx"},
                {R"(\udc00)", "\xEF\xBF\xBD"},
                {R"(\ud800\u0041)",
                 "\xEF\xBF\xBD"
                 "A"},
                {R"(\ud800\ud83d\ude00)", "\xEF\xBF\xBD\xF0\x9F\x98\x80"}};
  for (const auto& [raw, lenient] : kCases) {
    EXPECT_FALSE(unescape_json(raw, text)) << raw;
    ASSERT_TRUE(unescape_json(raw, text, EscapePolicy::kLenient)) << raw;
    EXPECT_EQ(text, lenient) << raw;
  }
  for (const char* raw : {"\\", "\\u12", "\\u12g4", "\\ud800\\u12"}) {
    EXPECT_FALSE(unescape_json(raw, text)) << raw;
    EXPECT_FALSE(unescape_json(raw, text, EscapePolicy::kLenient)) << raw;
  }
}

}  // namespace
}  // namespace lanescope
