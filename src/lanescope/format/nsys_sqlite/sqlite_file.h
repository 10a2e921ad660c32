// Reads tables of an SQLite file that a stranger may have made. Nothing in the file is executed: it
// is opened read-only, and views, triggers, virtual tables and computed columns count as absent.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"

namespace lanescope::format {

bool is_sqlite(std::string_view head);  // by its first 16 bytes

// One row; the cells are in the order in which the columns were asked for.
class SqliteRow {
 public:
  explicit SqliteRow(void* statement) : statement_(statement) {}
  std::optional<std::int64_t> integer(int column) const;   // nothing: NULL or no number
  std::optional<std::string_view> text(int column) const;  // valid until the next row

 private:
  void* statement_;
};

// One thread. The file must not change while it is read.
class SqliteFile {
 public:
  virtual ~SqliteFile() = default;
  // kIo, kCorruptInput: cannot be opened as SQLite.
  static Result<std::unique_ptr<SqliteFile>> open(const std::filesystem::path& path);
  // `bytes` stay where they are, and must outlive the file.
  static Result<std::unique_ptr<SqliteFile>> open_bytes(std::string_view bytes);

  // The names of all tables that has_table() knows, in order.
  virtual std::vector<std::string> table_names() const = 0;
  virtual bool has_table(std::string_view name) const = 0;
  virtual bool has_column(std::string_view table, std::string_view column) const = 0;
  // Calls `take` with every row of the table. Columns that the table lacks are NULL. False: the file is
  // damaged somewhere in the table, and `take` got the rows before that. No such table: no rows.
  virtual bool for_each_row(std::string_view table, std::initializer_list<const char*> columns,
                            const std::function<void(const SqliteRow&)>& take) = 0;
};

}  // namespace lanescope::format
