#include "lanescope/sql/query_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "lanescope/analysis/close_names.h"
#include "lanescope/model/table_schema.h"
#include "lanescope/sql/database.h"

namespace lanescope::sql {
namespace {

constexpr char kOnlyReading[] =
    "only reading is allowed: SELECT, EXPLAIN and PRAGMA table_info; the trace never changes";

bool is_name_byte(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

// The tables of ours whose names are words of the query.
std::vector<const TableSchema*> tables_in(std::string_view sql) {
  std::vector<const TableSchema*> found;
  for (const auto& schemas : {sql_tables(), sql_views()})
    for (const TableSchema& table : schemas)
      for (std::size_t at = sql.find(table.name); at != std::string_view::npos;
           at = sql.find(table.name, at + 1)) {
        const std::size_t end = at + table.name.size();
        if ((at > 0 && is_name_byte(sql[at - 1])) || (end < sql.size() && is_name_byte(sql[end])))
          continue;
        found.push_back(&table);
        break;
      }
  return found;
}

std::string joined(const std::vector<std::string>& words, const char* last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last : ", ";
    text += words[i];
  }
  return text;
}

std::string nearest(std::string_view wrong, const std::vector<std::string_view>& names) {
  const auto close = analysis::find_close_names(wrong, names);
  return close.empty() ? "" : "; did you mean " + joined(close, " or ") + "?";
}

std::string unknown_column(std::string_view name, std::string_view sql) {
  std::string_view column =
      name.substr(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1);
  std::vector<std::string_view> names;
  for (const TableSchema* table : tables_in(sql))
    for (const ColumnSchema& one : table->columns)
      if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
  std::string text = fmt::format("there is no column '{}'{}", name, nearest(column, names));
  if (text.ends_with("?") || names.empty()) return text;
  const std::vector<std::string> all(names.begin(), names.end());
  return text + "; the tables of the query have " + joined(all, " and ");
}

// What Perfetto has and we have under another name.
struct PerfettoName {
  std::string_view name, ours;
};
constexpr PerfettoName kPerfettoNames[] = {
    {"thread_slice", "slice JOIN thread ON track_id = utid"},
    {"process_slice", "slice JOIN track ON track_id = track.id JOIN process USING (upid)"},
    {"thread_or_process_slice", "slice JOIN track ON track_id = track.id"},
    {"slices", "slice"},
    {"gpu_slice", "kernel, or memcpy"},
    {"gpu_track", "stream"},
    {"process_track", "track"},
    {"counter_track", "track; counter has the names itself"},
    {"thread_state", "nothing: the trace has no record of the scheduler"},
    {"sched", "nothing: the trace has no record of the scheduler"},
    {"stats", "no table: lanescope info"},
    {"following_flow", "flow"},
    {"preceding_flow", "flow"},
    {"directly_connected_flow", "flow"},
};

std::string unknown_table(std::string_view name) {
  for (const PerfettoName& each : kPerfettoNames)
    if (each.name == name)
      return fmt::format("there is no table '{}', which is Perfetto's; here it is {}", name,
                         each.ours);
  const auto names = Database::table_names();
  std::string text = fmt::format("there is no table '{}'{}", name, nearest(name, names));
  if (text.ends_with("?")) return text;
  const std::vector<std::string> all(names.begin(), names.end());
  return text + "; tables are " + joined(all, " and ");
}

std::string near_text(sqlite3* database, std::string_view sql) {
  const int offset = sqlite3_error_offset(database);
  if (offset < 0 || static_cast<std::size_t>(offset) >= sql.size()) return {};
  const std::string_view rest = sql.substr(static_cast<std::size_t>(offset), 30);
  return fmt::format(" (character {}: {})", offset + 1, rest.substr(0, rest.find('\n')));
}

std::string message_of(sqlite3* database, std::string_view sql) {
  const std::string_view message = sqlite3_errmsg(database);
  const auto after = [&](std::string_view begin) {
    return message.substr(std::min(begin.size(), message.size()));
  };
  if (message.starts_with("no such column: "))
    return unknown_column(after("no such column: "), sql) + near_text(database, sql);
  if (message.starts_with("no such table: "))
    return unknown_table(after("no such table: ")) + near_text(database, sql);
  if (message == "near \"INCLUDE\": syntax error")
    return "INCLUDE PERFETTO MODULE is of Perfetto alone; leave it out";
  return fmt::format("not a query that SQLite takes: {}{}", message, near_text(database, sql));
}

}  // namespace

Error query_error(sqlite3* database, std::string_view sql, std::chrono::nanoseconds timeout,
                  bool timed_out) {
  switch (sqlite3_errcode(database)) {
    case SQLITE_INTERRUPT:
      if (timed_out)
        return {Errc::kLimit, fmt::format("the query was stopped after {:.3g} s, its limit",
                                          std::chrono::duration<double>(timeout).count())};
      return {Errc::kLimit, "the query was interrupted"};
    case SQLITE_NOMEM:
      return {
          Errc::kLimit,
          "the query needs more memory than it may take; ask for fewer rows, or aggregate them"};
    case SQLITE_TOOBIG:
      return {Errc::kLimit, "a text of the query or of its result is longer than 16 MiB"};
    case SQLITE_AUTH:
      return {Errc::kInvalidArgument, kOnlyReading};
    default:
      // SQLite finds a write to a virtual table before it asks the authorizer.
      if (std::string_view(sqlite3_errmsg(database)).ends_with(" may not be modified"))
        return {Errc::kInvalidArgument, kOnlyReading};
      return {Errc::kInvalidArgument, message_of(database, sql)};
  }
}

}  // namespace lanescope::sql
