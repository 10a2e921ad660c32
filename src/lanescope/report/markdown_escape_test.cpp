#include "lanescope/report/markdown_escape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lanescope/report/check_text.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::report {
namespace {

TEST(MarkdownEscapeTest, CharactersWithAMeaningGetABackslash) {
  EXPECT_EQ(markdown_escaped("a|b `c` *d* _e_ [f](g) <h> # i ~j~ &amp; \\ !"),
            "a\\|b \\`c\\` \\*d\\* \\_e\\_ \\[f\\](g) \\<h\\> \\# i \\~j\\~ \\&amp; \\\\ \\!");
  EXPECT_EQ(markdown_escaped("aten::mm, 4.5 % (x)"), "aten::mm, 4.5 % (x)");
  EXPECT_EQ(markdown_escaped(""), "");
}

// A heading, a list or the end of a table's row begins at a line break.
TEST(MarkdownEscapeTest, NothingEndsTheLine) {
  EXPECT_EQ(markdown_escaped("a\n# b\r\n- c\t\x7f"), "a \\# b  \\- c  ");
  EXPECT_EQ(markdown_code("a\nb"), "`a b`");
}

TEST(MarkdownEscapeTest, AWordThatBeginsALineBeginsNoListOrHeading) {
  EXPECT_EQ(markdown_escaped("- a + b === --- 1. c 2) d"), "\\- a \\+ b \\=== \\--- 1\\. c 2\\) d");
  EXPECT_EQ(markdown_escaped("a-b a=b 1.5 f(1, 2)x"), "a-b a=b 1.5 f(1, 2)x");
}

TEST(MarkdownEscapeTest, OtherBytesStay) {
  EXPECT_EQ(markdown_escaped("\xc3\xa9 \xff"), "\xc3\xa9 \xff");
}

TEST(MarkdownEscapeTest, ACodeSpanHasMoreBackticksThanItsText) {
  EXPECT_EQ(markdown_code("trace.json"), "`trace.json`");
  EXPECT_EQ(markdown_code("a``b"), "```a``b```");
  EXPECT_EQ(markdown_code("`a"), "`` `a ``");
  EXPECT_EQ(markdown_code(""), "`  `");
}

// Names of a trace in the table of a broken budget: one row stays one row of three cells.
TEST(MarkdownEscapeTest, NamesDoNotBreakTheTableOfACheck) {
  testing::Sketch sketch;
  sketch.kernel("k", 0, 1000);
  const Trace trace = sketch.trace();
  const auto facts = explain::gather_facts(trace);
  explain::BudgetReport report;
  report.broken = 1;
  report.lines.emplace_back();
  report.lines[0].key = "idle";
  report.lines[0].state = explain::BudgetState::kBroken;
  report.lines[0].text = explain::say("before {}", {explain::name("a|b\n# <script>")});
  report.lines[0].evidence.push_back(
      {kNone<SliceId>, explain::say("{}", {explain::name("x | y `z`")})});
  const std::string page =
      check_text(*facts, report, {.trace = "a`b.json", .budget = "budget.toml", .markdown = true});
  EXPECT_THAT(page, ::testing::HasSubstr("``a`b.json``"));
  const std::string row = page.substr(page.find("| BROKEN"));
  EXPECT_THAT(row, ::testing::HasSubstr("a\\|b"));
  EXPECT_THAT(row, ::testing::HasSubstr("\\# \\<script\\>"));
  EXPECT_THAT(row, ::testing::HasSubstr("<br>x \\| y \\`z\\`"));
  EXPECT_EQ(std::count(row.begin(), row.end(), '\n'), 1);
}

}  // namespace
}  // namespace lanescope::report
