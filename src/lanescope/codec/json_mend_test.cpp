#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_event_bounds.h"

#include <gtest/gtest.h>

#include "lanescope/base/json_escape.h"
#include "lanescope/codec/json_text.h"

namespace lanescope::codec {
namespace {

std::string mended(std::string_view text, Mend expected, std::uint32_t times = 1) {
  std::string out;
  const MendResult result = mend_json(text, true, out);
  EXPECT_EQ(result.status, MendStatus::kDone) << text;
  EXPECT_EQ(result.mends[expected].count, times) << text << " became " << out;
  EXPECT_TRUE(is_strict_json(out)) << out;
  return out;
}

TEST(JsonMendTest, StrictJsonComesOutByteForByte) {
  for (const char* text :
       {R"({"a": [1, -2.5e3, true, null, "x\"\\\u00e9\ud83d\ude00"], "b": {} , "c":[ ]})",
        R"("text")", "12", "[]", R"({"k":"a,b}"})", R"_({"name": "f(\"a\", \"b\")", "ph": "X"})_",
        "[\"\\\\\"]", R"({"a":"]","b":"}"})", R"({"ph":"M","\",":":"})"}) {
    std::string out;
    const MendResult result = mend_json(text, true, out);
    EXPECT_EQ(result.status, MendStatus::kDone) << text;
    EXPECT_EQ(out, text);
    EXPECT_FALSE(result.mends.any()) << text;
    EXPECT_EQ(result.used, std::string_view(text).size());
    EXPECT_TRUE(is_strict_json(text)) << text;
  }
}

TEST(JsonMendTest, StopsBehindTheValue) {
  std::string out;
  const MendResult result = mend_json(R"({"a": 1}, {"b": 2})", false, out);
  EXPECT_EQ(result.status, MendStatus::kDone);
  EXPECT_EQ(result.used, 8u);
  EXPECT_EQ(out, R"({"a": 1})");
}

TEST(JsonMendTest, StrayQuotesAreEscaped) {
  EXPECT_EQ(mended(R"({"name": "a "b" c", "ph": "X"})", Mend::kText, 2),
            R"({"name": "a \"b\" c", "ph": "X"})");
  EXPECT_EQ(mended(R"_({"name": "f("a", "b")", "ph": "X"})_", Mend::kText, 4),
            R"_({"name": "f(\"a\", \"b\")", "ph": "X"})_");
  EXPECT_EQ(mended(R"({"name": "{"a"}", "ph": "X"})", Mend::kText, 2),
            R"({"name": "{\"a\"}", "ph": "X"})");
}

TEST(JsonMendTest, LoneBackslashesAreDoubled) {
  EXPECT_EQ(mended(R"({"name": "C:\Users\me", "x": 1})", Mend::kText, 2),
            R"({"name": "C:\\Users\\me", "x": 1})");
  EXPECT_EQ(mended(R"({"name": "C:\dir\", "ph": "X"})", Mend::kText, 2),
            R"({"name": "C:\\dir\\", "ph": "X"})");
  EXPECT_EQ(mended(R"(["\u12g4"])", Mend::kText), R"(["\\u12g4"])");
}

TEST(JsonMendTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(mended("[\"a\nb\tc\x01\"]", Mend::kText, 3), R"(["a\nb\tc\u0001"])");
}

TEST(JsonMendTest, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(mended("[\"a\xff"
                   "b\"]",
                   Mend::kUtf8),
            "[\"a\xef\xbf\xbd"
            "b\"]");
  EXPECT_EQ(mended("[\"\xed\xa0\x80\"]", Mend::kUtf8, 3),
            "[\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"]");
  EXPECT_EQ(mended(R"(["\ud800x"])", Mend::kUtf8), R"(["\ufffdx"])");
}

TEST(JsonMendTest, NumbersThatAreNoneBecomeNullOrInfinite) {
  EXPECT_EQ(mended("[nan, -nan, NaN, -nan(ind), 1.#QNAN]", Mend::kNotANumber, 5),
            "[null, null, null, null, null]");
  EXPECT_EQ(mended("[inf, -inf, Infinity, -Infinity]", Mend::kNotANumber, 4),
            "[1e999, -1e999, 1e999, -1e999]");
}

TEST(JsonMendTest, CommasAndBracketsArePutRight) {
  EXPECT_EQ(mended(R"({"a": 1,})", Mend::kSyntax), R"({"a": 1})");
  EXPECT_EQ(mended(R"({"a": 1,, "b": 2})", Mend::kSyntax), R"({"a": 1, "b": 2})");
  EXPECT_EQ(mended(R"({"a": 1 "b": 2})", Mend::kSyntax), R"({"a": 1 ,"b": 2})");
  EXPECT_EQ(mended(": 5", Mend::kSyntax), "5");
  EXPECT_EQ(mended("[1 2,]", Mend::kSyntax, 2), "[1 ,2]");
  EXPECT_EQ(mended(R"({"a": , "b": 2})", Mend::kSyntax), R"({"a": null, "b": 2})");
  EXPECT_EQ(mended(R"({"a": [1, 2})", Mend::kSyntax), R"({"a": [1, 2]})");
  EXPECT_EQ(mended("[True, None, +5]", Mend::kSyntax, 3), "[true, null, 5]");
  EXPECT_EQ(mended("[007.25, .5, -3.]", Mend::kSyntax, 3), "[7.25, 0.5, -3]");
  EXPECT_EQ(mended(R"({"args": {"dims": [1, 2]], "x": 3}})", Mend::kSyntax),
            R"({"args": {"dims": [1, 2], "x": 3}})");
}

TEST(JsonMendTest, AnEventThatStartsInsideAnotherEndsIt) {
  std::string out;
  const std::string_view text = R"({"ph": "X", "args": {"a": 1}, {"ph": "X"})";
  const MendResult result = mend_json(text, true, out);
  EXPECT_EQ(result.status, MendStatus::kDone);
  EXPECT_EQ(out, R"({"ph": "X", "args": {"a": 1}})");
  EXPECT_EQ(text.substr(result.used), R"({"ph": "X"})");
}

TEST(JsonMendTest, AStringThatNeverEndsDoesNotSwallowTheNextEvent) {
  std::string out;
  const MendResult result =
      mend_json("{\"name\": \"abc}, {\"ph\": \"X\", \"name\": \"b\"}", true, out);
  EXPECT_EQ(result.status, MendStatus::kBroken);
  EXPECT_LE(result.used, 18u);
}

TEST(JsonMendTest, AsksForMoreTextInsideAValue) {
  const std::string_view text = R"({"name": "a\u00e9", "args": {"x": [1, 2.5, "y"]}})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    std::string out;
    EXPECT_EQ(mend_json(text.substr(0, size), false, out).status, MendStatus::kNeedMore) << size;
  }
}

TEST(JsonMendTest, NestingIsLimited) {
  std::string out;
  EXPECT_EQ(mend_json(std::string(500, '[') + std::string(500, ']'), true, out).status,
            MendStatus::kDone);
  EXPECT_EQ(mend_json(std::string(600, '[') + std::string(600, ']'), true, out).status,
            MendStatus::kBroken);
}

TEST(JsonMendTest, EventStartsAreFoundByTheirFirstKey) {
  const std::string_view text = R"(x}, {"args": {"name": "n"}, {"other": 1}, { "ph": "X"})";
  EXPECT_EQ(find_event_start(text, 0), 4u);
  EXPECT_EQ(find_event_start(text, 5), text.find("{ \"ph\""));
  EXPECT_EQ(find_event_start(text, 45), std::string_view::npos);
}

TEST(JsonMendTest, TheLastEventEndIsBehindItsComma) {
  EXPECT_EQ(find_last_event_end("{\"ph\": 1},\n {\"ph\": 2},\n {\"name\": \"x"), 22u);
  EXPECT_EQ(find_last_event_end("{\"ph\": 1}, {\"nam"), 0u);
  EXPECT_EQ(find_last_event_end("{\"args\": {\"a\": [{\"x\": 1}, {\"x\": 2}]"), 0u);
}

TEST(JsonTextTest, EscapingAndUnescapingAreInverse) {
  const std::string text("a\"b\\c\n\t\r\x01 \xc3\xa9 \xf0\x9f\x98\x80",
                         18);  // the zero byte at its end, too
  std::string escaped, plain;
  append_escaped_json(escaped, text);
  EXPECT_TRUE(is_strict_json("\"" + escaped + "\"")) << escaped;
  ASSERT_TRUE(unescape_json(escaped, plain));
  EXPECT_EQ(plain, text);
}

TEST(JsonTextTest, BadEscapesAreRefused) {
  std::string plain;
  for (const char* raw : {"\\", "\\x", "\\u12", "\\ud800", "\\ud800\\u0041", "\\udc00"})
    EXPECT_FALSE(unescape_json(raw, plain)) << raw;
  ASSERT_TRUE(unescape_json("\\u20ac\\ud83d\\ude00\\/", plain));
  EXPECT_EQ(plain, "\xe2\x82\xac\xf0\x9f\x98\x80/");
}

}  // namespace
}  // namespace lanescope::codec
