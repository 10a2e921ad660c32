// What `.schema` prints.
#include <fmt/format.h>

#include <algorithm>

#include "lanescope/analysis/close_names.h"
#include "lanescope/model/table_schema.h"
#include "lanescope/sql/database.h"
#include "lanescope/sql/views.h"

namespace lanescope::sql {
namespace {

// Columns in a list, each with unit and meaning as a comment.
std::string columns_text(const TableSchema& table) {
  std::size_t width = 0;
  for (const ColumnSchema& column : table.columns)
    width = std::max(width, column.name.size() + 1 + column.type.size() + 1);
  std::string text;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnSchema& column = table.columns[i];
    const std::string left = fmt::format("{}{}{}{}", column.name, column.type == "any" ? "" : " ",
                                         column.type == "any" ? "" : column.type,
                                         i + 1 < table.columns.size() ? "," : "");
    text +=
        fmt::format("  {:<{}}  -- {}{}{}\n", left, width, column.unit.empty() ? "" : column.unit,
                    column.unit.empty() ? "" : ": ", column.meaning);
  }
  return text;
}

std::string table_text(const TableSchema& table) {
  const std::string_view view = view_sql(table.name);
  std::string text = fmt::format("-- {}\n", table.meaning);
  if (view.empty())
    return text + fmt::format("TABLE {} (\n{});\n", table.name, columns_text(table));
  return text + fmt::format("VIEW {} (\n{}) AS {};\n", table.name, columns_text(table), view);
}

}  // namespace

std::vector<std::string_view> Database::table_names() {
  std::vector<std::string_view> names;
  for (const auto& schemas : {sql_tables(), sql_views()})
    for (const TableSchema& table : schemas) names.push_back(table.name);
  return names;
}

Result<std::string> Database::schema_text(std::string_view table) {
  std::string text;
  for (const auto& schemas : {sql_tables(), sql_views()})
    for (const TableSchema& one : schemas)
      if (table.empty() || one.name == table)
        text.append(text.empty() ? "" : "\n").append(table_text(one));
  if (!text.empty()) return text;
  const auto names = table_names();
  const auto close = analysis::find_close_names(table, names, 1);
  return Error{
      Errc::kInvalidArgument,
      fmt::format("there is no table '{}'{}", table,
                  close.empty() ? "; .tables lists them" : "; did you mean " + close[0] + "?")};
}

}  // namespace lanescope::sql
