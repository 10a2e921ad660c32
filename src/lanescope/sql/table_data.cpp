#include "lanescope/sql/table_data.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "lanescope/base/sort_rows.h"

namespace lanescope::sql {
namespace {

// NULL, then numbers, then texts by their bytes.
bool is_less(const Cell& a, const Cell& b) {
  if (a.type != b.type) return a.type < b.type;
  return a.type == CellType::kText ? a.text < b.text : a.integer < b.integer;
}

// The number of each row's text in the order of all texts; 0 is NULL. Texts of a Trace are stored
// once, so equal addresses mean equal texts, and only distinct texts are compared.
std::vector<std::uint32_t> text_ranks(TableData& table, std::size_t column, std::size_t& ranks) {
  std::unordered_map<const char*, std::uint32_t> number_of;
  std::vector<std::string_view> texts;
  std::vector<std::uint32_t> numbers(table.size());
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    const Cell cell = table.cell(row, column);
    if (cell.type != CellType::kText) continue;
    const auto [found, is_new] =
        number_of.try_emplace(cell.text.data(), static_cast<std::uint32_t>(texts.size() + 1));
    if (is_new) texts.push_back(cell.text);
    numbers[row] = found->second;
  }
  std::vector<std::uint32_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0);
  sort_rows(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return texts[a] < texts[b]; });
  std::vector<std::uint32_t> rank_of(texts.size() + 1, 0);
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || texts[order[i]] != texts[order[i - 1]]) ++rank;
    rank_of[order[i] + 1] = rank;
  }
  for (std::uint32_t& number : numbers) number = rank_of[number];
  ranks = rank + 1;
  return numbers;
}

// Each sorts `order` by one column and keeps the order of ties.
void sort_by_text(TableData& table, std::size_t column, std::vector<std::uint32_t>& order) {
  std::size_t ranks = 0;
  const std::vector<std::uint32_t> rank_of_row = text_ranks(table, column, ranks);
  std::vector<std::size_t> next(ranks + 1, 0);
  for (const std::uint32_t rank : rank_of_row) ++next[rank + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint32_t> sorted(order.size());
  for (const std::uint32_t row : order) sorted[next[rank_of_row[row]]++] = row;
  order = std::move(sorted);
}

void sort_by_number(TableData& table, std::size_t column, std::vector<std::uint32_t>& order) {
  struct Key {
    std::int64_t value;
    std::uint32_t place;  // in `order`
    bool operator<(const Key& other) const {
      return value != other.value ? value < other.value : place < other.place;
    }
  };
  std::vector<Key> keys;
  std::vector<std::uint32_t> sorted;  // first the rows with NULL
  sorted.reserve(order.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    const Cell cell = table.cell(order[place], column);
    if (cell.type == CellType::kInteger)
      keys.push_back({cell.integer, static_cast<std::uint32_t>(place)});
    else
      sorted.push_back(order[place]);
  }
  if (!std::is_sorted(keys.begin(), keys.end())) std::sort(keys.begin(), keys.end());
  for (const Key& key : keys) sorted.push_back(order[key.place]);
  order = std::move(sorted);
}

// The first place in [begin, end) for which `test` is false; true only at the front.
template <typename Test>
std::size_t first_false(std::size_t begin, std::size_t end, Test test) {
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (test(middle))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

}  // namespace

TableData::TableData(TraceRows& rows, const TableSource& source, const TableSchema& schema)
    : rows_(&rows), source_(&source), schema_(&schema) {}

std::size_t TableData::size() {
  if (!size_) {
    if (source_->ids) ids_ = source_->ids(*rows_);
    size_ = source_->ids ? ids_.size() : source_->count(*rows_);
  }
  return *size_;
}

std::optional<std::size_t> TableData::column_of(ColumnUse use) const {
  for (std::size_t i = 0; i < source_->columns.size(); ++i)
    if (source_->columns[i].use == use) return i;
  return std::nullopt;
}

Places TableData::within(Places places, std::size_t column, const Bounds& bounds) {
  const std::size_t begin = first_false(places.begin, places.end, [&](std::size_t row) {
    return cell(row, column).integer < bounds.low;
  });
  return {begin, first_false(begin, places.end, [&](std::size_t row) {
            return cell(row, column).integer <= bounds.high;
          })};
}

std::size_t TableData::end_of_equal(Places places, std::size_t column) {
  const std::int64_t value = cell(places.begin, column).integer;
  return first_false(places.begin, places.end,
                     [&](std::size_t row) { return cell(row, column).integer <= value; });
}

std::span<const std::uint32_t> TableData::sorted_by(const std::vector<std::size_t>& columns) {
  if (const auto found = orders_.find(columns); found != orders_.end()) return found->second;
  std::vector<std::uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0);
  for (auto column = columns.rbegin(); column != columns.rend(); ++column) {
    if (schema_->columns[*column].type == "text")
      sort_by_text(*this, *column, order);
    else
      sort_by_number(*this, *column, order);
  }
  return orders_.emplace(columns, std::move(order)).first->second;
}

Places TableData::sorted_within(std::size_t column, const Bounds& bounds) {
  const auto order = sorted_by({column});
  const std::size_t begin = first_false(0, order.size(), [&](std::size_t place) {
    const Cell one = cell(order[place], column);
    return one.type == CellType::kNull || one.integer < bounds.low;
  });
  return {begin, first_false(begin, order.size(), [&](std::size_t place) {
            return cell(order[place], column).integer <= bounds.high;
          })};
}

Places TableData::sorted_equal(std::size_t column, const Cell& value) {
  const auto order = sorted_by({column});
  const std::size_t begin = first_false(0, order.size(), [&](std::size_t place) {
    return is_less(cell(order[place], column), value);
  });
  return {begin, first_false(begin, order.size(), [&](std::size_t place) {
            return !is_less(value, cell(order[place], column));
          })};
}

}  // namespace lanescope::sql
