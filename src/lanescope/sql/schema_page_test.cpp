// docs/formats/sql_tables.md has every table and column, as model/sql_schema.cpp declares them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "lanescope/model/table_schema.h"
#include "lanescope/sql/views.h"

namespace lanescope::sql {
namespace {

constexpr char kPage[] = LANESCOPE_SOURCE_DIR "/docs/formats/sql_tables.md";

std::string section(const TableSchema& table) {
  const std::string_view view = view_sql(table.name);
  std::string text =
      fmt::format("## {}{}\n\n{}\n\n| column | type | unit | meaning |\n|---|---|---|---|\n",
                  table.name, view.empty() ? "" : " (view)", table.meaning);
  for (const ColumnSchema& column : table.columns)
    text += fmt::format("| `{}` | {} | {} | {} |\n", column.name, column.type, column.unit,
                        column.meaning);
  return text + "\n";
}

TEST(SchemaPageTest, ThePageListsEveryTableAndColumn) {
  std::string expected;
  for (const auto& schemas : {sql_tables(), sql_views()})
    for (const TableSchema& table : schemas) expected += section(table);
  expected.pop_back();
  std::ifstream file(kPage);
  std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = std::min(page.find("## "), page.size());
  if (std::getenv("LANESCOPE_UPDATE_GOLDEN")) {
    std::ofstream(kPage) << page.substr(0, begin) + expected;
    GTEST_SKIP() << "wrote " << kPage;
  }
  EXPECT_EQ(page.substr(begin), expected) << "LANESCOPE_UPDATE_GOLDEN=1 writes the page again";
}

}  // namespace
}  // namespace lanescope::sql
