// The rows of one table, and the orders in which queries want them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lanescope/sql/tables.h"

namespace lanescope::sql {

// Places [begin, end) of a table, or of one of its orders.
struct Places {
  std::size_t begin = 0, end = 0;
};
// Inclusive at both ends.
struct Bounds {
  std::int64_t low = INT64_MIN, high = INT64_MAX;
  bool is_open() const { return low == INT64_MIN && high == INT64_MAX; }
};

// Not thread-safe. Rows are numbers from 0 in the table's own order.
class TableData {
 public:
  TableData(TraceRows& rows, const TableSource& source, const TableSchema& schema);

  const TableSource& source() const { return *source_; }
  const TableSchema& schema() const { return *schema_; }
  // The first call may compute an analysis.
  std::size_t size();
  Cell cell(std::size_t row, std::size_t column) {
    const auto id = ids_.empty() ? static_cast<std::uint32_t>(row) : ids_[row];
    return source_->columns[column].value(*rows_, id);
  }
  // The column with that use; nothing: none.
  std::optional<std::size_t> column_of(ColumnUse use) const;

  // Rows whose value is within the bounds. The column must be ascending within `places`.
  Places within(Places places, std::size_t column, const Bounds& bounds);
  // The end of the rows that have the same value as row places.begin. The column must be ascending within `places`.
  std::size_t end_of_equal(Places places, std::size_t column);

  // All rows, sorted by integer or text columns (the first counts most) as SQL orders them; ties in
  // the table's order. Made on first use: O(n log n) a column; keeps 4 bytes per row.
  std::span<const std::uint32_t> sorted_by(const std::vector<std::size_t>& columns);
  // True: sorted_by() has this order or may make it. The number of orders is limited, because queries can name many combinations.
  bool can_sort_by(const std::vector<std::size_t>& columns) const {
    return columns.size() == 1 || orders_.size() < kMostOrders || orders_.contains(columns);
  }
  // Places in sorted_by({column}).
  Places sorted_within(std::size_t column, const Bounds& bounds);
  Places sorted_equal(std::size_t column, const Cell& value);

 private:
  static constexpr std::size_t kMostOrders = 40;

  TraceRows* rows_;
  const TableSource* source_;
  const TableSchema* schema_;
  std::optional<std::size_t> size_;
  std::vector<std::uint32_t> ids_;
  std::map<std::vector<std::size_t>, std::vector<std::uint32_t>> orders_;  // by columns
};

}  // namespace lanescope::sql
