#include "lanescope/format/nsys_sqlite/sqlite_file.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace lanescope::format {
namespace {

constexpr int kMostTextBytes = 16 << 20;

// A batch has at most so many rows, and texts of so many bytes before its last row. With fewer rows, the
// two threads wake each other up so often that nothing is gained.
constexpr std::size_t kBatchRows = 4096;
constexpr std::size_t kBatchTextBytes = 256 << 10;

int authorize(void* /*user*/, int action, const char* /*first*/, const char* /*second*/,
              const char* /*database*/, const char* /*trigger*/) {
  return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_PRAGMA ? SQLITE_OK
                                                                                     : SQLITE_DENY;
}

std::string quoted_name(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text.append(c == '"' ? 2 : 1, c);
  return text + '"';
}

struct Closes {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Closes>;

class OpenedFile final : public SqliteFile {
 public:
  explicit OpenedFile(sqlite3* database) : database_(database) {}

  Result<void> start(std::string_view name);
  std::vector<std::string> table_names() const override {
    std::vector<std::string> names;
    for (const auto& [table, columns] : columns_) names.push_back(table);
    return names;
  }
  bool has_table(std::string_view name) const override {
    return columns_.find(name) != columns_.end();
  }
  bool has_column(std::string_view table, std::string_view column) const override {
    const auto found = columns_.find(table);
    return found != columns_.end() &&
           std::find(found->second.begin(), found->second.end(), column) != found->second.end();
  }
  bool for_each_row(std::string_view table, std::initializer_list<const char*> columns,
                    const std::function<void(const SqliteRow&)>& take) override;
  void set_reads_ahead(bool reads_ahead) override { reads_ahead_ = reads_ahead; }

 private:
  Statement prepare(const std::string& sql) const {
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr);
    return Statement(statement);
  }
  std::vector<std::string> columns_of(const std::string& table) const;

  std::unique_ptr<sqlite3, Closes> database_;
  std::map<std::string, std::vector<std::string>, std::less<>> columns_;  // by table
  bool reads_ahead_ = false;
};

Result<void> OpenedFile::start(std::string_view name) {
  sqlite3* const database = database_.get();
  for (const int off : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW,
                        SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION})
    sqlite3_db_config(database, off, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kMostTextBytes);
  sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
  for (const char* const pragma : {"PRAGMA cell_size_check = ON", "PRAGMA mmap_size = 0",
                                   "PRAGMA temp_store = MEMORY", "PRAGMA query_only = ON"})
    sqlite3_exec(database, pragma, nullptr, nullptr, nullptr);
  sqlite3_set_authorizer(database, authorize, nullptr);
  // A view or a virtual table has no root page.
  const Statement tables =
      prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0");
  int code = tables ? SQLITE_OK : sqlite3_errcode(database);
  while (tables && (code = sqlite3_step(tables.get())) == SQLITE_ROW) {
    const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(tables.get(), 0));
    if (text) columns_[text];
  }
  if (code != SQLITE_DONE)
    return Error{Errc::kCorruptInput, std::string(name) +
                                          ": expected an SQLite database, found a "
                                          "damaged one (" +
                                          sqlite3_errstr(code) + "); export it again"};
  for (auto& [table, columns] : columns_) columns = columns_of(table);
  return {};
}

// Those that are stored: a computed column could run functions.
std::vector<std::string> OpenedFile::columns_of(const std::string& table) const {
  std::vector<std::string> columns;
  const Statement rows = prepare("PRAGMA table_xinfo(" + quoted_name(table) + ")");
  while (rows && sqlite3_step(rows.get()) == SQLITE_ROW) {
    const auto* const name = reinterpret_cast<const char*>(sqlite3_column_text(rows.get(), 1));
    if (name && sqlite3_column_int(rows.get(), 6) == 0) columns.emplace_back(name);
  }
  return columns;
}

void add_cell(sqlite3_stmt* statement, int column, RowBatch& batch) {
  SqliteCell cell;
  const int type = sqlite3_column_type(statement, column);
  if (type == SQLITE_INTEGER) {
    cell.kind = SqliteCell::kInteger;
    cell.value = sqlite3_column_int64(statement, column);
  } else if (type == SQLITE_TEXT) {
    const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
    const auto bytes = static_cast<std::uint32_t>(sqlite3_column_bytes(statement, column));
    if (text) {
      cell = {SqliteCell::kText, bytes, static_cast<std::int64_t>(batch.texts.size())};
      batch.texts.append(text, bytes);
    }
  }
  batch.cells.push_back(cell);
}

// False: the statement gave its last row, or `code` says why not.
bool fill(sqlite3_stmt* statement, RowBatch& batch, int& code) {
  const int columns = sqlite3_column_count(statement);
  batch.column_count = static_cast<std::size_t>(columns);
  while (batch.row_count < kBatchRows && batch.texts.size() < kBatchTextBytes) {
    code = sqlite3_step(statement);
    if (code != SQLITE_ROW) return false;
    for (int i = 0; i < columns; ++i) add_cell(statement, i, batch);
    ++batch.row_count;
  }
  return true;
}

bool OpenedFile::for_each_row(std::string_view table, std::initializer_list<const char*> columns,
                              const std::function<void(const SqliteRow&)>& take) {
  if (!has_table(table)) return true;
  std::string sql = "SELECT ";
  for (const char* const column : columns) {
    if (sql.size() > 7) sql += ", ";
    sql += has_column(table, column) ? quoted_name(column) : "NULL";
  }
  const Statement rows = prepare(sql + " FROM " + quoted_name(table) + " NOT INDEXED");
  if (!rows) return false;
  int code = SQLITE_ROW;
  RowsAhead ahead([&](RowBatch& batch) { return fill(rows.get(), batch, code); },
                  reads_ahead_ && sqlite3_threadsafe() != 0);
  while (const RowBatch* const batch = ahead.next())
    for (std::size_t row = 0; row < batch->row_count; ++row) take(batch->row(row));
  return code == SQLITE_DONE;
}

Error not_opened(std::string_view name, int code) {
  return {code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? Errc::kCorruptInput : Errc::kIo,
          std::string(name) + ": expected an SQLite database, found: " + sqlite3_errstr(code)};
}

// The path as a URI; its own signs must not mean anything.
std::string uri_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  std::string uri = "file:";
  for (const char c : (error ? path : absolute).string()) {
    if (c == '%' || c == '?' || c == '#') {
      constexpr char kDigits[] = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      uri.append({'%', kDigits[byte >> 4U], kDigits[byte & 15U]});
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";  // no lock, no journal, no WAL
}

Result<std::unique_ptr<SqliteFile>> started(std::unique_ptr<OpenedFile> file,
                                            std::string_view name) {
  LANESCOPE_TRY_VOID(file->start(name));
  return std::unique_ptr<SqliteFile>(std::move(file));
}

}  // namespace

bool is_sqlite(std::string_view head) {
  return head.starts_with(std::string_view("SQLite format 3\0", 16));
}

Result<std::unique_ptr<SqliteFile>> SqliteFile::open(const std::filesystem::path& path) {
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(uri_of(path).c_str(), &database,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  auto file = std::make_unique<OpenedFile>(database);
  if (code != SQLITE_OK) return not_opened(path.string(), code);
  return started(std::move(file), path.string());
}

Result<std::unique_ptr<SqliteFile>> SqliteFile::open_bytes(std::string_view bytes) {
  sqlite3* database = nullptr;
  int code =
      sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  auto file = std::make_unique<OpenedFile>(database);
  if (code == SQLITE_OK) {
    // Read-only: SQLite does not write to the bytes.
    auto* const data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    code = sqlite3_deserialize(database, "main", data, size, size, SQLITE_DESERIALIZE_READONLY);
  }
  if (code != SQLITE_OK) return not_opened("the input", code);
  return started(std::move(file), "the input");
}

}  // namespace lanescope::format
