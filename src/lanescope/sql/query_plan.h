// How a scan of one table finds its rows. xBestIndex chooses a plan and xFilter follows it.
// SQLite passes the plan from one to the other as text.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/sql/table_data.h"

namespace lanescope::sql {

enum class Comparison : char {
  kEqual = '=',
  kLess = '<',
  kLessOrEqual = 'l',
  kGreater = '>',
  kGreaterOrEqual = 'g'
};

struct Constraint {
  std::size_t column = 0;
  Comparison comparison = Comparison::kEqual;
  std::size_t source = 0;  // its place among SQLite's constraints
};
struct OrderTerm {
  std::size_t column = 0;
  bool descending = false;
};

struct QueryPlan {
  std::vector<std::size_t> sorted_by;  // columns; none: the table's own order
  bool reversed = false;
  std::vector<Constraint> used;
  // For SQLite's planner.
  bool one_row = false;
  bool ordered = false;  // the rows come as the query wants them
  double rows = 0;       // estimate
};

// SQLite itself tests the constraints that the plan leaves out. O(columns); calls table.size().
QueryPlan choose_plan(TableData& table, const std::vector<Constraint>& possible,
                      const std::vector<OrderTerm>& wanted);

// The columns of sorted_by, then '1' if reversed, else '0', then two characters per constraint: column, comparison. Columns
// are letters from 'A'.
std::string plan_text(const QueryPlan& plan);
QueryPlan parse_plan(const char* text);

// Ranges of rows, or of places in TableData::sorted_by(), in ascending order. `values`: one for each
// used constraint. A value of another type than the column's does not narrow the ranges; NULL means no row.
std::vector<Places> find_places(TableData& table, const QueryPlan& plan,
                                const std::vector<Cell>& values);

}  // namespace lanescope::sql
