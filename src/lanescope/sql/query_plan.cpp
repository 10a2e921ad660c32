// Rows of a table are in order of id, and mostly of track and of time within a track. So an id, a
// track and a range of time are binary searches. For a key column, such as a name, all rows are
// sorted once (TableData::sorted_by); the same order serves ORDER BY and GROUP BY, which else
// would copy every row into a sorter.
#include "lanescope/sql/query_plan.h"

#include <algorithm>
#include <cmath>

namespace lanescope::sql {
namespace {

ColumnUse use_of(const TableData& table, std::size_t column) {
  return table.source().columns[column].use;
}

bool is_sortable(const TableData& table, std::size_t column) {
  const ColumnUse use = use_of(table, column);
  return use == ColumnUse::kKey || use == ColumnUse::kTime || use == ColumnUse::kTrack;
}

// The rows that the constraints on id, track and time leave, by searches in the table's order.
QueryPlan plan_in_own_order(TableData& table, const std::vector<Constraint>& possible) {
  QueryPlan plan;
  plan.rows = static_cast<double>(table.size());
  for (const Constraint& one : possible) {
    const bool equal = one.comparison == Comparison::kEqual;
    switch (use_of(table, one.column)) {
      case ColumnUse::kId:
        if (equal) plan.one_row = true;
        plan.rows /= 3;
        break;
      case ColumnUse::kTrack:
        plan.rows /= equal ? 8 : 3;
        break;
      case ColumnUse::kTime:
        plan.rows /= equal ? 1000 : 4;
        break;
      default:
        continue;
    }
    plan.used.push_back(one);
  }
  plan.rows = plan.one_row ? 1 : std::max(plan.rows, 1.0);
  return plan;
}

bool is_in_own_order(const TableData& table, const QueryPlan& plan,
                     const std::vector<OrderTerm>& wanted) {
  if (plan.one_row) return true;
  const bool has_track = table.column_of(ColumnUse::kTrack).has_value();
  bool one_track = !has_track;
  for (const Constraint& used : plan.used)
    if (use_of(table, used.column) == ColumnUse::kTrack && used.comparison == Comparison::kEqual)
      one_track = true;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].descending != wanted[0].descending) return false;
    switch (use_of(table, wanted[i].column)) {
      case ColumnUse::kId:
        return true;  // no two are equal, so further terms change nothing
      case ColumnUse::kTrack:
        one_track = true;
        break;
      case ColumnUse::kTime:
        // Two rows may begin at the same time; what orders them then must be the table's order.
        if (!one_track ||
            (i + 1 < wanted.size() && use_of(table, wanted[i + 1].column) != ColumnUse::kId))
          return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

QueryPlan plan_by_key(TableData& table, const Constraint& constraint) {
  QueryPlan plan;
  plan.sorted_by = {constraint.column};
  plan.used = {constraint};
  const bool is_text = table.schema().columns[constraint.column].type == "text";
  plan.rows = std::max(1.0, static_cast<double>(table.size()) / (is_text ? 50 : 1000));
  return plan;
}

void find_order(TableData& table, const std::vector<OrderTerm>& wanted, QueryPlan& plan) {
  if (wanted.empty() || !plan.sorted_by.empty()) return;
  if (is_in_own_order(table, plan, wanted)) {
    plan.ordered = true;
    plan.reversed = wanted[0].descending;
    return;
  }
  for (const OrderTerm& term : wanted)
    if (!is_sortable(table, term.column) || term.descending != wanted[0].descending) return;
  // The sorted order replaces the table's, so a search in the table's order is lost. What is kept is
  // a search for the one column by which the rows are sorted.
  for (const Constraint& used : plan.used)
    if (wanted.size() > 1 || used.column != wanted[0].column) return;
  std::vector<std::size_t> columns;
  for (const OrderTerm& term : wanted) columns.push_back(term.column);
  if (!table.can_sort_by(columns)) return;
  plan.sorted_by = std::move(columns);
  plan.ordered = true;
  plan.reversed = wanted[0].descending;
}

// Narrows the bounds; false: no row can match. Comparisons with other types than numbers are left
// to SQLite.
bool narrow(Bounds& bounds, Comparison comparison, const Cell& value) {
  if (value.type == CellType::kNull) return false;
  std::int64_t low = INT64_MIN, high = INT64_MAX;
  if (value.type == CellType::kInteger) {
    low = high = value.integer;
  } else if (value.type == CellType::kReal) {
    // Beyond +-2^62, rounding to whole numbers is not safe, and no time is there.
    if (!(std::abs(value.real) < 0x1p62)) return true;
    low = static_cast<std::int64_t>(std::floor(value.real));
    high = static_cast<std::int64_t>(std::ceil(value.real));
  } else {
    return true;
  }
  const bool to_high = comparison == Comparison::kEqual || comparison == Comparison::kLess ||
                       comparison == Comparison::kLessOrEqual;
  const bool to_low = comparison == Comparison::kEqual || comparison == Comparison::kGreater ||
                      comparison == Comparison::kGreaterOrEqual;
  if (to_high) bounds.high = std::min(bounds.high, high);
  if (to_low) bounds.low = std::max(bounds.low, low);
  return bounds.low <= bounds.high;
}

// Ranges of a time in each track of `places`.
std::vector<Places> by_track(TableData& table, Places places, std::size_t track, std::size_t time,
                             const Bounds& bounds) {
  std::vector<Places> found;
  while (places.begin < places.end) {
    const std::size_t end = table.end_of_equal(places, track);
    const Places one = table.within({places.begin, end}, time, bounds);
    if (one.begin < one.end) found.push_back(one);
    places.begin = end;
  }
  return found;
}

std::vector<Places> sorted_places(TableData& table, const QueryPlan& plan,
                                  const std::vector<Cell>& values) {
  const std::size_t column = plan.sorted_by[0];
  const bool is_text = table.schema().columns[column].type == "text";
  Bounds bounds;
  for (std::size_t i = 0; i < plan.used.size(); ++i) {
    if (is_text && values[i].type == CellType::kText)
      return {table.sorted_equal(column, values[i])};
    if (is_text ? values[i].type == CellType::kNull
                : !narrow(bounds, plan.used[i].comparison, values[i]))
      return {};
  }
  if (is_text || bounds.is_open()) return {{0, table.size()}};
  return {table.sorted_within(column, bounds)};
}

}  // namespace

QueryPlan choose_plan(TableData& table, const std::vector<Constraint>& possible,
                      const std::vector<OrderTerm>& wanted) {
  QueryPlan plan = plan_in_own_order(table, possible);
  for (const Constraint& one : possible)
    if (use_of(table, one.column) == ColumnUse::kKey && one.comparison == Comparison::kEqual)
      if (QueryPlan by_key = plan_by_key(table, one); by_key.rows < plan.rows)
        plan = std::move(by_key);
  find_order(table, wanted, plan);
  return plan;
}

std::string plan_text(const QueryPlan& plan) {
  std::string text;
  for (const std::size_t column : plan.sorted_by) text += static_cast<char>('A' + column);
  text += plan.reversed ? '1' : '0';
  for (const Constraint& one : plan.used) {
    text += static_cast<char>('A' + one.column);
    text += static_cast<char>(one.comparison);
  }
  return text;
}

QueryPlan parse_plan(const char* text) {
  QueryPlan plan;
  for (; *text >= 'A'; ++text) plan.sorted_by.push_back(static_cast<std::size_t>(*text - 'A'));
  plan.reversed = *text == '1';
  for (++text; *text != 0; text += 2)
    plan.used.push_back({static_cast<std::size_t>(*text - 'A'), static_cast<Comparison>(text[1])});
  return plan;
}

std::vector<Places> find_places(TableData& table, const QueryPlan& plan,
                                const std::vector<Cell>& values) {
  if (!plan.sorted_by.empty()) return sorted_places(table, plan, values);
  Bounds ids, tracks, times;
  for (std::size_t i = 0; i < plan.used.size(); ++i) {
    const ColumnUse use = use_of(table, plan.used[i].column);
    Bounds& bounds = use == ColumnUse::kId ? ids : use == ColumnUse::kTrack ? tracks : times;
    if (!narrow(bounds, plan.used[i].comparison, values[i])) return {};
  }
  Places places{0, table.size()};
  const auto track = table.column_of(ColumnUse::kTrack);
  if (!ids.is_open()) places = table.within(places, *table.column_of(ColumnUse::kId), ids);
  if (!tracks.is_open()) places = table.within(places, *track, tracks);
  if (times.is_open()) return {places};
  const std::size_t time = *table.column_of(ColumnUse::kTime);
  if (track) return by_track(table, places, *track, time, times);
  return {table.within(places, time, times)};
}

}  // namespace lanescope::sql
