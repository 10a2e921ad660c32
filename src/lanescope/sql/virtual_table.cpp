// https://www.sqlite.org/vtab.html. Private to this file: SQLite's C structures with ours after
// them. Exceptions (no memory) end at each callback.
#include "lanescope/sql/virtual_table.h"

#include <cmath>
#include <cstring>
#include <new>
#include <string>

#include "lanescope/sql/query_plan.h"

namespace lanescope::sql {
namespace {

using Tables = std::vector<std::unique_ptr<TableData>>;

struct VirtualTable {
  sqlite3_vtab base{};  // first, as SQLite wants it
  TableData* data = nullptr;
};

struct Cursor {
  sqlite3_vtab_cursor base{};  // first, as SQLite wants it
  TableData* data = nullptr;
  std::vector<Places> places;
  const std::uint32_t* order = nullptr;  // null: places are rows
  bool reversed = false;
  std::size_t range = 0;  // which of `places`
  std::size_t at = 0;     // place in it
  std::size_t row() const { return order ? order[at] : at; }
};

TableData& data_of(sqlite3_vtab* table) { return *reinterpret_cast<VirtualTable*>(table)->data; }
Cursor& cursor_of(sqlite3_vtab_cursor* cursor) { return *reinterpret_cast<Cursor*>(cursor); }

template <typename Work>
int guarded(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (...) {
    return SQLITE_ERROR;
  }
}

int connect(sqlite3* database, void* tables, int /*argc*/, const char* const* argv,
            sqlite3_vtab** out, char** error) {
  return guarded([&]() -> int {
    for (const auto& data : *static_cast<Tables*>(tables)) {
      if (data->schema().name != argv[2]) continue;
      sqlite3_vtab_config(database, SQLITE_VTAB_INNOCUOUS);
      const int code = sqlite3_declare_vtab(database, declaration(data->schema()).c_str());
      if (code != SQLITE_OK) return code;
      auto table = std::make_unique<VirtualTable>();
      table->data = data.get();
      *out = &table.release()->base;
      return SQLITE_OK;
    }
    *error = sqlite3_mprintf("no such table of a trace: %s", argv[2]);
    return SQLITE_ERROR;
  });
}

int disconnect(sqlite3_vtab* table) {
  delete reinterpret_cast<VirtualTable*>(table);
  return SQLITE_OK;
}

std::optional<Comparison> comparison_of(unsigned char op) {
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
      return Comparison::kEqual;
    case SQLITE_INDEX_CONSTRAINT_LT:
      return Comparison::kLess;
    case SQLITE_INDEX_CONSTRAINT_LE:
      return Comparison::kLessOrEqual;
    case SQLITE_INDEX_CONSTRAINT_GT:
      return Comparison::kGreater;
    case SQLITE_INDEX_CONSTRAINT_GE:
      return Comparison::kGreaterOrEqual;
    default:
      return std::nullopt;
  }
}

std::vector<Constraint> possible_constraints(sqlite3_index_info& info, const TableData& data) {
  std::vector<Constraint> possible;
  for (int i = 0; i < info.nConstraint; ++i) {
    const auto& one = info.aConstraint[i];
    const auto comparison = comparison_of(one.op);
    if (!one.usable || one.iColumn < 0 || !comparison) continue;
    const auto column = static_cast<std::size_t>(one.iColumn);
    if (data.schema().columns[column].type == "text" &&
        std::strcmp(sqlite3_vtab_collation(&info, i), "BINARY") != 0)
      continue;
    possible.push_back({column, *comparison, static_cast<std::size_t>(i)});
  }
  return possible;
}

int best_index(sqlite3_vtab* table, sqlite3_index_info* info) {
  return guarded([&]() -> int {
    TableData& data = data_of(table);
    std::vector<OrderTerm> wanted;
    for (int i = 0; i < info->nOrderBy; ++i) {
      if (info->aOrderBy[i].iColumn < 0) {  // the row number, which is no column of ours
        wanted.clear();
        break;
      }
      wanted.push_back(
          {static_cast<std::size_t>(info->aOrderBy[i].iColumn), info->aOrderBy[i].desc != 0});
    }
    const QueryPlan plan = choose_plan(data, possible_constraints(*info, data), wanted);
    int argument = 0;
    for (const Constraint& used : plan.used) {
      info->aConstraintUsage[used.source].argvIndex = ++argument;
      info->aConstraintUsage[used.source].omit = 0;  // SQLite tests the exact comparison
    }
    info->idxStr = sqlite3_mprintf("%s", plan_text(plan).c_str());
    if (!info->idxStr) return SQLITE_NOMEM;
    info->needToFreeIdxStr = 1;
    info->orderByConsumed = plan.ordered && !wanted.empty() ? 1 : 0;
    info->estimatedRows = static_cast<sqlite3_int64>(plan.rows);
    info->estimatedCost = plan.rows + std::log2(static_cast<double>(data.size()) + 2);
    if (plan.one_row) info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    return SQLITE_OK;
  });
}

int open_cursor(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
  return guarded([&]() -> int {
    auto cursor = std::make_unique<Cursor>();
    cursor->data = &data_of(table);
    *out = &cursor.release()->base;
    return SQLITE_OK;
  });
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete reinterpret_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

Cell cell_of(sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
      return Cell::of(sqlite3_value_int64(value));
    case SQLITE_FLOAT:
      return Cell::of_real(sqlite3_value_double(value));
    case SQLITE_TEXT: {
      const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(value));
      return Cell::of_text({text, static_cast<std::size_t>(sqlite3_value_bytes(value))});
    }
    case SQLITE_NULL:
      return {};
    default:
      return {CellType::kBlob, 0, 0, {}};
  }
}

// Moves to the first place of the first range that has one, from the range on.
void enter_range(Cursor& cursor) {
  while (cursor.range < cursor.places.size()) {
    const std::size_t which =
        cursor.reversed ? cursor.places.size() - 1 - cursor.range : cursor.range;
    const Places& places = cursor.places[which];
    if (places.begin < places.end) {
      cursor.at = cursor.reversed ? places.end - 1 : places.begin;
      return;
    }
    ++cursor.range;
  }
}

int filter(sqlite3_vtab_cursor* base, int /*number*/, const char* text, int argc,
           sqlite3_value** argv) {
  return guarded([&]() -> int {
    Cursor& cursor = cursor_of(base);
    const QueryPlan plan = parse_plan(text);
    std::vector<Cell> values;
    for (int i = 0; i < argc; ++i) values.push_back(cell_of(argv[i]));
    cursor.places = find_places(*cursor.data, plan, values);
    cursor.order = plan.sorted_by.empty() ? nullptr : cursor.data->sorted_by(plan.sorted_by).data();
    cursor.reversed = plan.reversed;
    cursor.range = 0;
    enter_range(cursor);
    return SQLITE_OK;
  });
}

int next(sqlite3_vtab_cursor* base) {
  Cursor& cursor = cursor_of(base);
  const Places& places =
      cursor.places[cursor.reversed ? cursor.places.size() - 1 - cursor.range : cursor.range];
  if (cursor.reversed ? cursor.at > places.begin : cursor.at + 1 < places.end) {
    cursor.at += cursor.reversed ? std::size_t(-1) : 1;
    return SQLITE_OK;
  }
  ++cursor.range;
  enter_range(cursor);
  return SQLITE_OK;
}

int is_at_end(sqlite3_vtab_cursor* base) {
  const Cursor& cursor = cursor_of(base);
  return cursor.range >= cursor.places.size() ? 1 : 0;
}

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int number) {
  return guarded([&]() -> int {
    const Cursor& cursor = cursor_of(base);
    set_result(context, cursor.data->cell(cursor.row(), static_cast<std::size_t>(number)));
    return SQLITE_OK;
  });
}

int row_id(sqlite3_vtab_cursor* base, sqlite3_int64* out) {
  *out = static_cast<sqlite3_int64>(cursor_of(base).row());
  return SQLITE_OK;
}

sqlite3_module module_of_tables() {
  sqlite3_module module{};
  module.iVersion = 2;
  module.xCreate = connect;
  module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xDestroy = disconnect;
  module.xOpen = open_cursor;
  module.xClose = close_cursor;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = is_at_end;
  module.xColumn = column;
  module.xRowid = row_id;
  return module;
}

}  // namespace

std::string declaration(const TableSchema& schema, const char* more) {
  std::string text = "CREATE TABLE x(";
  for (const ColumnSchema& column : schema.columns) {
    if (text.back() != '(') text += ", ";
    text.append("\"").append(column.name).append("\"");
    if (column.type != "any") text.append(" ").append(column.type);
  }
  return text + more + ")";
}

void set_result(sqlite3_context* context, const Cell& cell) {
  switch (cell.type) {
    case CellType::kInteger:
      return sqlite3_result_int64(context, cell.integer);
    case CellType::kReal:
      return sqlite3_result_double(context, cell.real);
    case CellType::kText:  // the Trace outlives the query
      return sqlite3_result_text64(context, cell.text.data(), cell.text.size(), SQLITE_STATIC,
                                   SQLITE_UTF8);
    default:
      return sqlite3_result_null(context);
  }
}

Result<void> add_virtual_tables(sqlite3* database, const Tables& tables) {
  static const sqlite3_module kModule = module_of_tables();
  // SQLite keeps the pointer and gives it back to connect(), which only reads.
  int code = sqlite3_create_module(database, "trace", &kModule, const_cast<Tables*>(&tables));
  for (std::size_t i = 0; i < tables.size() && code == SQLITE_OK; ++i) {
    const std::string name(tables[i]->schema().name);
    code = sqlite3_exec(database, ("CREATE VIRTUAL TABLE \"" + name + "\" USING trace").c_str(),
                        nullptr, nullptr, nullptr);
  }
  if (code == SQLITE_OK) return {};
  return Error{Errc::kUnavailable,
               std::string("expected SQLite to take the tables of a trace, found: ") +
                   sqlite3_errmsg(database)};
}

}  // namespace lanescope::sql
