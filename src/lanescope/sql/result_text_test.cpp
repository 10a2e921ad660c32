#include "lanescope/sql/result_text.h"

#include <gtest/gtest.h>

#include "lanescope/sql/query_rows_test.h"

namespace lanescope::sql {
namespace {

std::string text_of(std::string_view query, const ResultOptions& options) {
  const auto database = database_of(Trace());
  std::string text;
  const auto writer = make_result_writer(options, [&](std::string_view part) { text += part; });
  EXPECT_TRUE(database->run(query, {}, *writer));
  return text;
}

constexpr char kQuery[] =
    "SELECT 'a' AS name, 12 AS n UNION ALL SELECT 'line\nend', NULL UNION ALL SELECT 'c', 3.25";

TEST(ResultTextTest, ATableAlignsNumbersOnTheRightAndTextsOnTheLeft) {
  EXPECT_EQ(text_of(kQuery, {}),
            "name         n\n--------  ----\na           12\nline end  NULL\nc         3.25\n");
}

TEST(ResultTextTest, LongTextsAreCutAtACharacter) {
  EXPECT_EQ(text_of("SELECT 'äöüäöüäöü' AS t", {.cell_width = 5}), "t\n-----\näö...\n");
}

TEST(ResultTextTest, CsvQuotesAndTellsEmptyFromNull) {
  EXPECT_EQ(text_of("SELECT 'a\"b,c' AS \"x,y\", '' AS e, NULL AS n, x'01ff' AS b",
                    {.form = ResultForm::kCsv}),
            "\"x,y\",e,n,b\r\n\"a\"\"b,c\",\"\",,01FF\r\n");
}

TEST(ResultTextTest, JsonHasOneListForEachStatement) {
  EXPECT_EQ(text_of("SELECT 1 AS a, 'q\"' AS b, 1e999 AS c; SELECT 2 AS d WHERE 0",
                    {.form = ResultForm::kJson}),
            "[\n{\"a\":1, \"b\":\"q\\\"\", \"c\":null}\n]\n[\n]\n");
}

TEST(ResultTextTest, WideRowsAfterTheFirstThousandStayWhole) {
  const std::string text = text_of(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i * 1 + 1 FROM n WHERE i < 1500) SELECT "
      "i, CASE WHEN i = 1500 THEN 'long text' ELSE 'x' END AS t FROM n",
      {});
  EXPECT_TRUE(text.ends_with("1500  long text\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1502);
}

}  // namespace
}  // namespace lanescope::sql
