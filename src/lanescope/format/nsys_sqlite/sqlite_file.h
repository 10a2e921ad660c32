// Reads tables of an SQLite file that a stranger may have made. Nothing in the file is executed: it
// is opened read-only, and views, triggers, virtual tables and computed columns count as absent.
#pragma once
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/format/nsys_sqlite/rows_ahead.h"

namespace lanescope::format {

bool is_sqlite(std::string_view head);  // by its first 16 bytes

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
  // Calls `take` with every row of the table, in order, on this thread. Columns that the table lacks are
  // NULL. False: the file is damaged somewhere in the table, and `take` got the rows before that. No
  // such table: no rows. Meanwhile another thread may read ahead, so `take` must not use the file.
  virtual bool for_each_row(std::string_view table, std::initializer_list<const char*> columns,
                            const std::function<void(const SqliteRow&)>& take) = 0;
  // Whether another thread may read rows of long tables ahead. At first: no.
  virtual void set_reads_ahead(bool reads_ahead) = 0;
};

}  // namespace lanescope::format
