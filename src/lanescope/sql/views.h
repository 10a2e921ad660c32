// The SQL of the views that model/table_schema.h declares, and the functions of SQL.
#pragma once
#include <sqlite3.h>

#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/sql/trace_rows.h"

namespace lanescope::sql {

// The text after "CREATE VIEW name AS". Empty: no such view.
std::string_view view_sql(std::string_view name);
Result<void> add_views(sqlite3* database);

// extract_arg(arg_set_id, key): the value of one argument; NULL: there is none.
Result<void> add_functions(sqlite3* database, TraceRows& rows);

}  // namespace lanescope::sql
