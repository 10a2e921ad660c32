// Rows of a table in batches, which another thread may fill while this one uses those before.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace lanescope::format {

struct SqliteCell {
  enum Kind : std::uint8_t { kOther, kInteger, kText } kind = kOther;  // kOther: NULL, or neither
  std::uint32_t text_bytes = 0;
  std::int64_t value = 0;  // the number, or where the text begins in RowBatch::texts
};

// One row; the cells are in the order in which the columns were asked for. Valid until the next row.
class SqliteRow {
 public:
  SqliteRow(const SqliteCell* cells, const char* texts) : cells_(cells), texts_(texts) {}
  std::optional<std::int64_t> integer(int column) const {  // nothing: NULL or no number
    const SqliteCell& cell = cells_[column];
    return cell.kind == SqliteCell::kInteger ? std::optional(cell.value) : std::nullopt;
  }
  std::optional<std::string_view> text(int column) const {
    const SqliteCell& cell = cells_[column];
    if (cell.kind != SqliteCell::kText) return std::nullopt;
    return std::string_view(texts_ + cell.value, cell.text_bytes);
  }

 private:
  const SqliteCell* cells_;
  const char* texts_;
};

struct RowBatch {
  std::vector<SqliteCell> cells;  // row by row
  std::string texts;
  std::size_t row_count = 0, column_count = 0;

  void clear() {
    cells.clear();
    texts.clear();
    row_count = 0;
  }
  SqliteRow row(std::size_t at) const { return {cells.data() + at * column_count, texts.data()}; }
};

// The caller uses next() on one thread. `fill` runs there until the second batch, so a short table
// starts no thread; from then on it runs on another one, if `may_start` and the system has one. What
// `fill` throws, next() throws.
class RowsAhead {
 public:
  // Fills an empty batch. False: nothing comes after it.
  using Fill = std::function<bool(RowBatch&)>;
  RowsAhead(Fill fill, bool may_start) : fill_(std::move(fill)), may_start_(may_start) {}
  ~RowsAhead();
  RowsAhead(const RowsAhead&) = delete;
  RowsAhead& operator=(const RowsAhead&) = delete;

  // Valid until the next call. nullptr: the end.
  const RowBatch* next();

 private:
  void start();
  void work();
  const RowBatch* take();

  const Fill fill_;
  const bool may_start_;
  RowBatch own_;  // filled by the caller
  bool has_more_ = true;
  std::size_t filled_ = 0;
  std::unique_ptr<RowBatch> used_;  // what next() gave last

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable has_room_, has_batch_;
  std::deque<std::unique_ptr<RowBatch>> full_, spare_;  // with mutex_, and so are the next three
  bool is_over_ = false, stop_ = false;
  std::exception_ptr thrown_;
};

}  // namespace lanescope::format
