// The tables of SQL over a TraceRows: which rows each has, and a function for each column.
// model/table_schema.h declares the tables; the functions here find their values.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lanescope/model/table_schema.h"
#include "lanescope/sql/cell.h"
#include "lanescope/sql/trace_rows.h"

namespace lanescope::sql {

// `id`: what the table's rows are, such as a row of Trace::slices(). Cost: O(1), or a binary search.
using CellFunction = Cell (*)(TraceRows& rows, std::uint32_t id);

// How a column helps to find rows.
enum class ColumnUse : std::uint8_t {
  kPlain,
  kKey,    // an id, a number or a text that people look for: an index is made when a query asks
  kId,     // ascending, no two equal
  kTrack,  // ascending; rows of one track follow each other
  kTime,   // ascending within a track, or, without a track column, in the whole table
};

struct ColumnSource {
  std::string_view name;
  CellFunction value = nullptr;
  ColumnUse use = ColumnUse::kPlain;
};

struct TableSource {
  std::string_view name;
  std::span<const ColumnSource> columns;  // in the order of the schema
  // The ids of the rows, ascending. Null: 0, 1, ... count() - 1.
  std::vector<std::uint32_t> (*ids)(TraceRows& rows);
  std::size_t (*count)(TraceRows& rows);
};

// One for each of sql_tables(), in that order.
std::span<const TableSource> table_sources();

// The tables of each source file.
std::span<const TableSource> slice_sources();   // tables whose rows are slices
std::span<const TableSource> place_sources();   // tracks, threads, processes, streams
std::span<const TableSource> detail_sources();  // everything else

// Helpers for these source files.
Cell text_cell(const Trace& trace, StringId id);  // kNone: NULL
Cell scalar_cell(const Trace& trace, const Scalar& value);
template <typename Id>
Cell id_cell(Id id) {
  return id == kNone<Id> ? Cell() : Cell::of(raw(id));
}
template <typename Number>
Cell optional_cell(const std::optional<Number>& value) {
  return value ? Cell::of(*value) : Cell();
}

}  // namespace lanescope::sql
