// What went wrong in a query, for people.
#pragma once
#include <sqlite3.h>

#include <chrono>
#include <string_view>

#include "lanescope/base/result.h"

namespace lanescope::sql {

// From SQLite's last error. Names the wrong table, column or function, and the nearest ones.
// `timeout`: what limited the query, if `timed_out`.
Error query_error(sqlite3* database, std::string_view sql, std::chrono::nanoseconds timeout,
                  bool timed_out);

}  // namespace lanescope::sql
