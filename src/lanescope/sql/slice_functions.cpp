// https://www.sqlite.org/vtab.html#tabfunc2. The argument is a hidden column after those of the table. Exceptions (no memory)
// end at each callback.
#include "lanescope/sql/slice_functions.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/sql/virtual_table.h"

namespace lanescope::sql {
namespace {

using Function = SliceFunctions::Function;

struct FunctionTable {
  sqlite3_vtab base{};  // first, as SQLite wants it
  const Function* function = nullptr;
};

struct FunctionCursor {
  sqlite3_vtab_cursor base{};  // first, as SQLite wants it
  const Function* function = nullptr;
  std::vector<std::uint32_t> found;  // ids of slices, ascending
  std::size_t at = 0;
  std::int64_t argument = 0;
};

const Function& function_of(sqlite3_vtab* table) {
  return *reinterpret_cast<FunctionTable*>(table)->function;
}
FunctionCursor& function_cursor(sqlite3_vtab_cursor* cursor) {
  return *reinterpret_cast<FunctionCursor*>(cursor);
}

template <typename Work>
int without_exceptions(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (...) {
    return SQLITE_ERROR;
  }
}

std::vector<std::uint32_t> ancestors_of(TraceRows& rows, std::uint32_t slice) {
  std::vector<std::uint32_t> found;
  const auto& parent = rows.nesting().parent;
  for (SliceId at = parent[slice]; at != kNone<SliceId>; at = parent[raw(at)])
    found.push_back(raw(at));
  std::reverse(found.begin(), found.end());
  return found;
}

// Slices of a thread are in preorder of their nesting.
std::vector<std::uint32_t> descendants_of(TraceRows& rows, std::uint32_t slice) {
  constexpr std::uint32_t kNotNested = analysis::SliceNesting::kNotNested;
  std::vector<std::uint32_t> found;
  const auto& depth = rows.nesting().depth;
  if (depth[slice] == kNotNested) return found;
  const Track& track = rows.trace().track(SliceId{slice});
  for (std::uint32_t i = slice + 1; i < track.first_slice + track.slice_count; ++i) {
    if (depth[i] == kNotNested) continue;
    if (depth[i] <= depth[slice]) break;
    found.push_back(i);
  }
  return found;
}

int connect_function(sqlite3* database, void* function, int /*argc*/, const char* const* /*argv*/,
                     sqlite3_vtab** out, char** /*error*/) {
  return without_exceptions([&]() -> int {
    const auto* const made = static_cast<const Function*>(function);
    const int code = sqlite3_declare_vtab(
        database, declaration(made->slices->schema(), ", id_of_call HIDDEN").c_str());
    if (code != SQLITE_OK) return code;
    auto table = std::make_unique<FunctionTable>();
    table->function = made;
    *out = &table.release()->base;
    return SQLITE_OK;
  });
}

int disconnect_function(sqlite3_vtab* table) {
  delete reinterpret_cast<FunctionTable*>(table);
  return SQLITE_OK;
}

int plan_function(sqlite3_vtab* table, sqlite3_index_info* info) {
  const auto hidden = static_cast<int>(function_of(table).slices->schema().columns.size());
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& one = info->aConstraint[i];
    if (one.iColumn != hidden || one.op != SQLITE_INDEX_CONSTRAINT_EQ || !one.usable) continue;
    info->aConstraintUsage[i].argvIndex = 1;
    info->aConstraintUsage[i].omit = 1;
    constexpr double kUsualRows = 10;
    info->estimatedRows = static_cast<sqlite3_int64>(kUsualRows);
    info->estimatedCost = kUsualRows;
    return SQLITE_OK;
  }
  return SQLITE_CONSTRAINT;  // no argument, or one that is not known yet in this order of the join
}

int open_function(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
  return without_exceptions([&]() -> int {
    auto cursor = std::make_unique<FunctionCursor>();
    cursor->function = &function_of(table);
    *out = &cursor.release()->base;
    return SQLITE_OK;
  });
}

int close_function(sqlite3_vtab_cursor* cursor) {
  delete reinterpret_cast<FunctionCursor*>(cursor);
  return SQLITE_OK;
}

int filter_function(sqlite3_vtab_cursor* base, int /*number*/, const char* /*text*/, int argc,
                    sqlite3_value** argv) {
  return without_exceptions([&]() -> int {
    FunctionCursor& cursor = function_cursor(base);
    cursor.found.clear();
    cursor.at = 0;
    if (argc != 1 || sqlite3_value_type(argv[0]) != SQLITE_INTEGER) return SQLITE_OK;
    cursor.argument = sqlite3_value_int64(argv[0]);
    TraceRows& rows = *cursor.function->rows;
    const std::size_t count = rows.trace().slices().size();
    if (cursor.argument < 0 || static_cast<std::uint64_t>(cursor.argument) >= count)
      return SQLITE_OK;
    const auto slice = static_cast<std::uint32_t>(cursor.argument);
    cursor.found =
        cursor.function->of_ancestors ? ancestors_of(rows, slice) : descendants_of(rows, slice);
    return SQLITE_OK;
  });
}

int next_of_function(sqlite3_vtab_cursor* base) {
  ++function_cursor(base).at;
  return SQLITE_OK;
}

int function_is_at_end(sqlite3_vtab_cursor* base) {
  const FunctionCursor& cursor = function_cursor(base);
  return cursor.at >= cursor.found.size() ? 1 : 0;
}

int column_of_function(sqlite3_vtab_cursor* base, sqlite3_context* context, int number) {
  return without_exceptions([&]() -> int {
    const FunctionCursor& cursor = function_cursor(base);
    TableData& slices = *cursor.function->slices;
    const auto column = static_cast<std::size_t>(number);
    set_result(context, column < slices.schema().columns.size()
                            ? slices.cell(cursor.found[cursor.at], column)
                            : Cell::of(cursor.argument));
    return SQLITE_OK;
  });
}

int row_of_function(sqlite3_vtab_cursor* base, sqlite3_int64* out) {
  const FunctionCursor& cursor = function_cursor(base);
  *out = cursor.found[cursor.at];
  return SQLITE_OK;
}

// Without xCreate: a function, and no table that could be made.
sqlite3_module module_of_functions() {
  sqlite3_module module{};
  module.iVersion = 2;
  module.xConnect = connect_function;
  module.xBestIndex = plan_function;
  module.xDisconnect = disconnect_function;
  module.xOpen = open_function;
  module.xClose = close_function;
  module.xFilter = filter_function;
  module.xNext = next_of_function;
  module.xEof = function_is_at_end;
  module.xColumn = column_of_function;
  module.xRowid = row_of_function;
  return module;
}

}  // namespace

Result<void> SliceFunctions::add_to(sqlite3* database) {
  static const sqlite3_module kModule = module_of_functions();
  for (const auto& [name, function] :
       {std::pair{"ancestor_slice", &ancestors_}, std::pair{"descendant_slice", &descendants_}})
    if (sqlite3_create_module(database, name, &kModule, function) != SQLITE_OK)
      return Error{Errc::kUnavailable, std::string("expected SQLite to take the function ") + name};
  return {};
}

}  // namespace lanescope::sql
