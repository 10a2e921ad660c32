// The tables of a Trace that users can ask about: one declaration of name,
// columns, types, units and meaning. Python's Trace.tables(), its docstrings
// and docs/formats/trace_tables.md come from it; so do the tables of SQL
// (sql/database.h) and docs/formats/sql_tables.md.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace lanescope {

struct ColumnSchema {
  std::string_view name;
  std::string_view type;     // numpy's for columns ("int64"), Python's for lists (int, str, float),
                             // SQL's for sql_tables() (integer, real, text, any)
  std::string_view unit;     // "ns", "count", "row of slices", ...; empty: none
  std::string_view meaning;  // one sentence
};

// How Python gives a table.
enum class TableForm : std::uint8_t {
  kArrays,  // each column is a read-only array, an attribute of the Trace with
            // the column's name
  kDicts,   // an attribute with the table's name: a list of dicts with the
            // columns as keys
  kTuples,  // an attribute with the table's name: a list of tuples in the order
            // of the columns
  kSql,     // a table or view of SQL; Trace::sql() in Python, `lanescope sql`
};

struct TableSchema {
  std::string_view name;
  TableForm form;
  std::string_view meaning;  // one sentence
  std::span<const ColumnSchema> columns;
};

std::span<const TableSchema> trace_tables();
// The tables of SQL, and then its views. Names are Perfetto's where they mean the same.
std::span<const TableSchema> sql_tables();
std::span<const TableSchema> sql_views();
// The column of any table of arrays; its names are unique. nullptr: none.
const ColumnSchema* find_array_column(std::string_view name);
const char* table_form_name(TableForm form);  // "arrays", "dicts", "tuples", "sql"

}  // namespace lanescope
