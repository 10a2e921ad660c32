#include "lanescope/sql/views.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/model/table_schema.h"

namespace lanescope::sql {
namespace {

struct View {
  std::string_view name, sql;
};

constexpr std::array kViews{
    View{"thread_track", "SELECT utid AS id, utid, name FROM thread"},
    View{"kernels_by_name",
         "SELECT name, count(*) AS count, sum(dur) AS dur, sum(dur) / count(*) AS mean_dur,\n"
         "  min(dur) AS min_dur, max(dur) AS max_dur,\n"
         "  100.0 * sum(dur) / (SELECT sum(dur) FROM kernel) AS percent\n"
         "FROM kernel GROUP BY name ORDER BY sum(dur) DESC, name"},
    View{"ops_by_name",
         "SELECT name, count(*) AS count, sum(dur) AS dur, sum(self_dur) AS self_dur,\n"
         "  sum(device_dur) AS device_dur\n"
         "FROM op GROUP BY name ORDER BY sum(self_dur) DESC, name"},
    View{"device_gap",
         "WITH work AS (SELECT id, ts, dur, name, device, op_id, step FROM kernel\n"
         "    UNION ALL SELECT id, ts, dur, name, device, op_id, step FROM memcpy),\n"
         "  next AS (SELECT *, max(ts + dur) OVER (PARTITION BY device ORDER BY ts, id\n"
         "    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS free_at FROM work)\n"
         "SELECT device, free_at AS ts, ts - free_at AS dur, id AS next_id, name AS next_name,\n"
         "  (SELECT name FROM slice WHERE slice.id = next.op_id) AS op_name, step\n"
         "FROM next WHERE ts > free_at ORDER BY ts - free_at DESC, id"},
    View{"step_time",
         "SELECT number AS step, ts, dur,\n"
         "  (SELECT count(*) FROM kernel WHERE kernel.step = number) AS kernel_count,\n"
         "  (SELECT coalesce(sum(dur), 0) FROM kernel WHERE kernel.step = number) AS kernel_dur,\n"
         "  (SELECT count(*) FROM memcpy WHERE memcpy.step = number) AS copy_count,\n"
         "  (SELECT coalesce(sum(dur), 0) FROM memcpy WHERE memcpy.step = number) AS copy_dur\n"
         "FROM step WHERE number IS NOT NULL ORDER BY ts"},
};

void set_argument(sqlite3_context* context, const Trace& trace, const ArgsView& args,
                  const ArgField& field) {
  const std::uint64_t bits = args.bits(field);
  switch (field.type) {
    case ArgType::kNull:
      return;
    case ArgType::kFalse:
    case ArgType::kTrue:
      return sqlite3_result_int(context, field.type == ArgType::kTrue ? 1 : 0);
    case ArgType::kInt32:
    case ArgType::kInt64:
      return sqlite3_result_int64(context, args.integer(&field).value_or(0));
    case ArgType::kUint64:
      return sqlite3_result_double(context, static_cast<double>(bits));
    case ArgType::kDouble: {
      double value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      return sqlite3_result_double(context, value);
    }
    case ArgType::kString:
    case ArgType::kJson: {
      const std::string_view text = trace.text(static_cast<StringId>(bits));
      return sqlite3_result_text64(context, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
  }
}

bool is_arg_set(TraceRows& rows, std::int64_t id) {
  if (id < 0 || id >= raw(kNone<ArgsId>)) return false;
  const auto& ids = rows.arg_sets().ids;
  return std::binary_search(ids.begin(), ids.end(), static_cast<ArgsId>(id));
}

// Perfetto has a prefix before the key that the file has: of JSON "args.", of its own format "debug.".
std::string_view without_prefix(std::string_view key) {
  for (const std::string_view prefix : {"args.", "debug."})
    if (key.starts_with(prefix)) return key.substr(prefix.size());
  return {};
}

// The last of equal keys counts.
std::optional<ArgField> find_field(const Trace& trace, const ArgsView& args, std::string_view key) {
  for (std::size_t i = args.size(); i-- > 0;)
    if (trace.text(args.field(i).key) == key) return args.field(i);
  return std::nullopt;
}

void extract_arg(sqlite3_context* context, int /*argc*/, sqlite3_value** argv) {
  auto& rows = *static_cast<TraceRows*>(sqlite3_user_data(context));
  if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER || sqlite3_value_type(argv[1]) != SQLITE_TEXT)
    return;
  try {
    const std::int64_t id = sqlite3_value_int64(argv[0]);
    if (!is_arg_set(rows, id)) return;
    const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(argv[1]));
    const std::string_view key(text, static_cast<std::size_t>(sqlite3_value_bytes(argv[1])));
    const ArgsView args = rows.trace().args(static_cast<ArgsId>(id));
    auto field = find_field(rows.trace(), args, key);
    if (const auto shorter = without_prefix(key); !field && !shorter.empty())
      field = find_field(rows.trace(), args, shorter);
    if (field) set_argument(context, rows.trace(), args, *field);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

}  // namespace

std::string_view view_sql(std::string_view name) {
  for (const View& view : kViews)
    if (view.name == name) return view.sql;
  return {};
}

Result<void> add_views(sqlite3* database) {
  for (const TableSchema& view : sql_views()) {
    std::string text = "CREATE VIEW \"";
    text.append(view.name).append("\" AS ").append(view_sql(view.name));
    if (sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      return Error{Errc::kUnavailable, "expected SQLite to take the view " +
                                           std::string(view.name) +
                                           ", found: " + sqlite3_errmsg(database)};
  }
  return {};
}

Result<void> add_functions(sqlite3* database, TraceRows& rows) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  if (sqlite3_create_function_v2(database, "extract_arg", 2, kFlags, &rows, extract_arg, nullptr,
                                 nullptr, nullptr) == SQLITE_OK)
    return {};
  return Error{Errc::kUnavailable, "expected SQLite to take the function extract_arg"};
}

}  // namespace lanescope::sql
