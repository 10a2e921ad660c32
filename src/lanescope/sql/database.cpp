#include "lanescope/sql/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

#include "lanescope/sql/query_errors.h"
#include "lanescope/sql/slice_functions.h"
#include "lanescope/sql/table_data.h"
#include "lanescope/sql/views.h"
#include "lanescope/sql/virtual_table.h"

namespace lanescope::sql {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kStepsBetweenTests = 2000;  // of SQLite's machine; about 0.1 ms
constexpr int kMostTextBytes = 16 << 20;  // of one value
constexpr int kMostQueryBytes = 1 << 20;

// Whether a statement may do that. The database is in memory and holds only the tables of the
// trace, so this is the second wall.
int authorize(void* /*user*/, int action, const char* first, const char* second,
              const char* /*database*/, const char* /*trigger*/) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return second && sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      for (const char* const allowed : {"table_info", "table_xinfo", "table_list"})
        if (first && sqlite3_stricmp(first, allowed) == 0) return SQLITE_OK;
      return SQLITE_DENY;
    case SQLITE_UPDATE:
      // SQLite asks this when it connects a virtual table. It refuses the same of a user itself,
      // because writable_schema is off.
      return first && std::strcmp(first, "sqlite_master") == 0 ? SQLITE_OK : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

struct Closes {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Closes>;

Cell column_cell(sqlite3_stmt* statement, int column) {
  const auto size = [&] {
    return static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  };
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return Cell::of(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
      return Cell::of_real(sqlite3_column_double(statement, column));
    case SQLITE_TEXT: {
      const auto* const text =
          reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return Cell::of_text({text ? text : "", text ? size() : 0});
    }
    case SQLITE_BLOB: {
      const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
      return {CellType::kBlob, 0, 0, {bytes ? bytes : "", bytes ? size() : 0}};
    }
    default:
      return {};
  }
}

class SqliteDatabase final : public Database {
 public:
  explicit SqliteDatabase(std::shared_ptr<const Trace> trace) : rows_(std::move(trace)) {}

  Result<void> start();
  Result<void> run(std::string_view sql, const Limits& limits, RowSink& sink) override;
  Result<void> save(const std::string& path) override;

 private:
  Result<void> run_statement(sqlite3_stmt* statement, RowSink& sink);
  Result<void> copy_into(const std::string& path);
  Error error_now(std::string_view sql) const;
  static int is_over(void* self);

  TraceRows rows_;
  std::vector<std::unique_ptr<TableData>> tables_;
  std::unique_ptr<SliceFunctions> functions_;
  std::unique_ptr<sqlite3, Closes> database_;  // its tables point to tables_ and functions_
  std::mutex mutex_;
  const Limits* limits_ = nullptr;
  Clock::time_point deadline_;
  bool timed_out_ = false;
};

Result<void> SqliteDatabase::start() {
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(":memory:", &opened,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK)
    return Error{Errc::kUnavailable,
                 std::string("expected SQLite to start, found: ") + sqlite3_errstr(code)};
  sqlite3_exec(opened, "PRAGMA temp_store = MEMORY", nullptr, nullptr, nullptr);  // writes no file
  for (std::size_t i = 0; i < table_sources().size(); ++i)
    tables_.push_back(std::make_unique<TableData>(rows_, table_sources()[i], sql_tables()[i]));
  LANESCOPE_TRY_VOID(add_virtual_tables(opened, tables_));
  LANESCOPE_TRY_VOID(add_views(opened));
  LANESCOPE_TRY_VOID(add_functions(opened, rows_));
  const auto slices = std::find_if(tables_.begin(), tables_.end(), [](const auto& table) {
    return table->schema().name == "slice";
  });
  functions_ = std::make_unique<SliceFunctions>(**slices, rows_);
  LANESCOPE_TRY_VOID(functions_->add_to(opened));
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);  // a "wrong name" is no text
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, kMostTextBytes);
  sqlite3_limit(opened, SQLITE_LIMIT_SQL_LENGTH, kMostQueryBytes);
  sqlite3_limit(opened, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(opened, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_limit(opened, SQLITE_LIMIT_EXPR_DEPTH, 200);
  sqlite3_set_authorizer(opened, authorize, nullptr);
  sqlite3_progress_handler(opened, kStepsBetweenTests, is_over, this);
  return {};
}

int SqliteDatabase::is_over(void* self) {
  auto& database = *static_cast<SqliteDatabase*>(self);
  if (!database.limits_) return 0;
  if (database.limits_->timeout.count() > 0 && Clock::now() > database.deadline_) {
    database.timed_out_ = true;
    return 1;
  }
  return database.limits_->is_stopped && database.limits_->is_stopped() ? 1 : 0;
}

Error SqliteDatabase::error_now(std::string_view sql) const {
  return query_error(database_.get(), sql, limits_ ? limits_->timeout : std::chrono::nanoseconds(0),
                     timed_out_);
}

Result<void> SqliteDatabase::run_statement(sqlite3_stmt* statement, RowSink& sink) {
  const int count = sqlite3_column_count(statement);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    const char* const name = sqlite3_column_name(statement, i);
    names.emplace_back(name ? name : "");
  }
  if (count > 0) sink.begin(names);
  std::vector<Cell> cells(names.size());
  for (;;) {
    const int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) break;
    if (code != SQLITE_ROW) return error_now(sqlite3_sql(statement));
    for (int i = 0; i < count; ++i) cells[static_cast<std::size_t>(i)] = column_cell(statement, i);
    if (count > 0 && !sink.row(cells)) break;
  }
  if (count > 0) sink.end();
  return {};
}

Result<void> SqliteDatabase::run(std::string_view sql, const Limits& limits, RowSink& sink) {
  if (sql.size() > static_cast<std::size_t>(kMostQueryBytes))
    return Error{Errc::kLimit, "expected a query of at most 1 MiB, found " +
                                   std::to_string(sql.size()) + " bytes"};
  // SQLite reads to the first zero byte and would never come to the end.
  if (const std::size_t zero = sql.find('\0'); zero != std::string_view::npos)
    return Error{Errc::kInvalidArgument,
                 "expected SQL text, found a zero byte after " + std::to_string(zero) + " bytes"};
  const std::lock_guard lock(mutex_);
  limits_ = &limits;
  timed_out_ = false;
  if (limits.timeout.count() > 0) deadline_ = Clock::now() + limits.timeout;
  Result<void> result;
  while (!sql.empty() && result) {
    sqlite3_stmt* prepared = nullptr;
    const char* rest = nullptr;
    const int code = sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        &prepared, &rest);
    const Statement statement(prepared);
    if (code != SQLITE_OK) {
      result = error_now(sql);
    } else {
      sql.remove_prefix(static_cast<std::size_t>(rest - sql.data()));
      if (prepared) result = run_statement(prepared, sink);
    }
  }
  limits_ = nullptr;
  return result;
}

Result<void> SqliteDatabase::copy_into(const std::string& path) {
  sqlite3* const database = database_.get();
  char* const attach = sqlite3_mprintf("ATTACH %Q AS file", path.c_str());
  int code = sqlite3_exec(database, attach, nullptr, nullptr, nullptr);
  sqlite3_free(attach);
  std::string steps = "PRAGMA file.journal_mode = OFF; PRAGMA file.synchronous = OFF; BEGIN;";
  for (const TableSchema& table : sql_tables()) {
    const std::string name(table.name);
    steps += "CREATE TABLE file.\"" + name + "\" AS SELECT * FROM main.\"" + name + "\";";
    if (table.columns[0].name == "id")
      steps += "CREATE INDEX file.\"" + name + "_id\" ON \"" + name + "\"(id);";
  }
  for (const TableSchema& view : sql_views()) {
    steps.append("CREATE VIEW file.\"").append(view.name).append("\" AS ");
    steps.append(view_sql(view.name)).append(";");
  }
  steps += "COMMIT;";
  if (code == SQLITE_OK) code = sqlite3_exec(database, steps.c_str(), nullptr, nullptr, nullptr);
  Result<void> result;
  if (code != SQLITE_OK) {
    result = Error{Errc::kIo, "expected to write the tables to '" + path +
                                  "', found: " + sqlite3_errmsg(database)};
    if (!sqlite3_get_autocommit(database))
      sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  sqlite3_exec(database, "DETACH file", nullptr, nullptr, nullptr);
  return result;
}

Result<void> SqliteDatabase::save(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::error_code error;
  if (std::filesystem::exists(path, error))
    return Error{Errc::kIo, "expected a new file, found '" + path + "'"};
  sqlite3* const database = database_.get();
  sqlite3_set_authorizer(database, nullptr, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 1);
  Result<void> result = copy_into(path);
  sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_set_authorizer(database, authorize, nullptr);
  if (!result) std::filesystem::remove(path, error);
  return result;
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(std::shared_ptr<const Trace> trace) {
  auto database = std::make_unique<SqliteDatabase>(std::move(trace));
  LANESCOPE_TRY_VOID(database->start());
  return std::unique_ptr<Database>(std::move(database));
}

bool is_complete(const std::string& sql) { return sqlite3_complete(sql.c_str()) != 0; }

void limit_memory_of_process(std::int64_t bytes) { sqlite3_hard_heap_limit64(bytes); }

}  // namespace lanescope::sql
