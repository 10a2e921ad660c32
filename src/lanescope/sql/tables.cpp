#include "lanescope/sql/tables.h"

#include <algorithm>

#include "lanescope/base/check.h"

namespace lanescope::sql {
namespace {

// Every column that is declared has a function, in the same order.
bool fits(const TableSchema& schema, const TableSource& source) {
  return std::equal(schema.columns.begin(), schema.columns.end(), source.columns.begin(),
                    source.columns.end(),
                    [](const ColumnSchema& a, const ColumnSource& b) { return a.name == b.name; });
}

std::vector<TableSource> in_order_of_schema() {
  std::vector<TableSource> all;
  for (const auto& some : {slice_sources(), place_sources(), detail_sources()})
    all.insert(all.end(), some.begin(), some.end());
  std::vector<TableSource> ordered;
  for (const TableSchema& schema : sql_tables()) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const TableSource& source) {
      return source.name == schema.name;
    });
    LANESCOPE_CHECK(found != all.end());
    LANESCOPE_CHECK(fits(schema, *found));
    ordered.push_back(*found);
  }
  return ordered;
}

}  // namespace

std::span<const TableSource> table_sources() {
  static const std::vector<TableSource> kSources = in_order_of_schema();
  return kSources;
}

Cell text_cell(const Trace& trace, StringId id) {
  return id == kNone<StringId> ? Cell() : Cell::of_text(trace.text(id));
}

Cell scalar_cell(const Trace& trace, const Scalar& value) {
  return value.is_text ? text_cell(trace, value.text) : Cell::of(value.number);
}

}  // namespace lanescope::sql
