// SQL over one Trace: the tables and views of model/table_schema.h, through SQLite's virtual
// tables, so that no event is copied. docs/formats/sql_tables.md lists them.
//
//   LANESCOPE_TRY(auto database, sql::Database::open(trace));
//   LANESCOPE_TRY_VOID(database->run("SELECT name, sum(dur) FROM kernel GROUP BY name", {}, sink));
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"
#include "lanescope/sql/cell.h"

namespace lanescope::sql {

struct Limits {
  // 0: none. Tested between SQLite's own steps, so a function call on one text, and an analysis
  // that a table needs, still run to their end.
  std::chrono::nanoseconds timeout{0};
  // Asked many times a second, on the thread that runs the query. True: the query ends.
  std::function<bool()> is_stopped = {};
};

// Takes what a query returns.
class RowSink {
 public:
  virtual ~RowSink() = default;
  // Before the rows of each statement that returns columns.
  virtual void begin(const std::vector<std::string>& columns) = 0;
  // Cells are valid until the function returns. False: no more rows of this statement are wanted.
  virtual bool row(std::span<const Cell> cells) = 0;
  virtual void end() {}  // after the last row of a statement
};

class Database {
 public:
  // kUnavailable: SQLite cannot be started. Cost: a few ms; analyses follow when a table asks.
  static Result<std::unique_ptr<Database>> open(std::shared_ptr<const Trace> trace);
  virtual ~Database() = default;

  // One statement or several. Nothing can be written: statements other than SELECT, EXPLAIN and
  // the PRAGMAs that list tables and columns are refused. kInvalidArgument: not SQL, or an unknown
  // name, with the nearest names. kLimit: the time or the memory is over, or the query was stopped;
  // the rows before that have reached the sink. Any thread, one query after the other.
  virtual Result<void> run(std::string_view sql, const Limits& limits, RowSink& sink) = 0;

  // Copies every table into a new SQLite file, and adds the views. The file must not exist. kIo:
  // it cannot be written; nothing is left of it then. Cost: about 1 us per row.
  virtual Result<void> save(const std::string& path) = 0;

  // The tables and views with their columns, units and meaning, as SQL with comments; of one of
  // them when `table` is given. kInvalidArgument: there is none of that name.
  static Result<std::string> schema_text(std::string_view table = {});
  static std::vector<std::string_view> table_names();  // views too
};

// Whether the text ends a statement: a ";" outside of quotes and comments.
bool is_complete(const std::string& sql);

// Limits SQLite's memory in the whole process, Python's sqlite3 included. 0: no limit.
void limit_memory_of_process(std::int64_t bytes);

}  // namespace lanescope::sql
