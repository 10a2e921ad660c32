// Gives the tables to SQLite as virtual tables. Copies nothing: a cursor is a list of ranges of rows.
#pragma once
#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/sql/table_data.h"

namespace lanescope::sql {

// Makes a virtual table in `database` for each of `tables`, which must outlive it.
Result<void> add_virtual_tables(sqlite3* database,
                                const std::vector<std::unique_ptr<TableData>>& tables);

// For other virtual tables with the same rows. Returns the text that declares a table to SQLite; `more`: further columns.
std::string declaration(const TableSchema& schema, const char* more = "");
void set_result(sqlite3_context* context, const Cell& cell);

}  // namespace lanescope::sql
