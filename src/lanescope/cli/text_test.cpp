#include "lanescope/cli/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lanescope::cli {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SanitizedTest, EscapeSequencesBecomeReadable) {
  EXPECT_EQ(sanitized("aten::\x1b[31mmm\x07"), "aten::\\u001b[31mmm\\u0007");
}

TEST(SanitizedTest, NewlineAndTabStayInTextAndAreEscapedInALine) {
  EXPECT_EQ(sanitized("a\tb\n"), "a\tb\n");
  EXPECT_EQ(sanitized_line("a\tb\n"), "a\\u0009b\\u000a");
}

TEST(SanitizedTest, C1ControlsActLikeEscapesAndAreEscaped) {
  EXPECT_EQ(sanitized("\xC2\x9B"
                      "31m"),
            "\\u009b31m");  // U+009B is CSI
  EXPECT_EQ(sanitized("\x7f"), "\\u007f");
}

TEST(SanitizedTest, DirectionOverridesAreEscaped) {
  EXPECT_EQ(sanitized("a\xE2\x80\xAE"
                      "b"),
            "a\\u202eb");  // U+202E right-to-left override
}

TEST(SanitizedTest, LettersOfAnyScriptStay) {
  EXPECT_EQ(sanitized("größe 行列 \xF0\x9F\x9A\x80"), "größe 行列 \xF0\x9F\x9A\x80");
}

TEST(SanitizedTest, BytesThatAreNotUtf8AreShownAsBytes) {
  EXPECT_EQ(sanitized("\x9b"), "\\x9b");  // a lone continuation byte: CSI on a Latin-1 terminal
  EXPECT_EQ(sanitized("\xC0\xAF"), "\\xc0\\xaf");           // overlong '/'
  EXPECT_EQ(sanitized("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(sanitized("\xE2\x80"), "\\xe2\\x80");           // cut short
}

TEST(SanitizedTest, SafeTextIsWhatSanitizingDoesNotChange) {
  for (const char* text : {"plain\n", "a\x1b", "\xC2\x9B", "\x80", "größe\t"}) {
    EXPECT_EQ(is_safe_for_terminal(text), sanitized(text) == text) << text;
  }
}

TEST(CloseMatchesTest, FindsTyposSwapsAndPrefixes) {
  const std::vector<std::string> commands = {"table",   "tree",   "info",
                                             "convert", "record", "recover"};
  EXPECT_THAT(close_matches("tabel", commands), ElementsAre("table"));
  EXPECT_THAT(close_matches("Tree", commands), ElementsAre("tree"));
  EXPECT_THAT(close_matches("rec", commands), ElementsAre("record", "recover"));
}

TEST(CloseMatchesTest, StaysSilentWhenNothingIsClose) {
  EXPECT_THAT(close_matches("export", {"table", "tree"}), IsEmpty());
  EXPECT_THAT(close_matches("x", {"a"}), IsEmpty());
  EXPECT_THAT(close_matches("", {"table"}), IsEmpty());
}

TEST(JoinedOrTest, ReadsAsASentence) {
  EXPECT_EQ(joined_or({"a"}), "a");
  EXPECT_EQ(joined_or({"a", "b", "c"}), "a, b or c");
}

TEST(WithCommasTest, GroupsByThree) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
}

}  // namespace
}  // namespace lanescope::cli
