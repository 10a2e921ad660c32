// Queries over a small trace: never a crash, never a write, an end within the limit.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_support.h"
#include "lanescope/model/table_schema.h"
#include "lanescope/sql/database.h"
#include "lanescope/sql/result_text.h"
#include "lanescope/testing/program_sketch.h"

namespace {

using lanescope::ColumnSchema;
using lanescope::TableSchema;
using lanescope::fuzz::Random;
using lanescope::sql::Cell;
using lanescope::sql::CellType;
using lanescope::sql::Database;

lanescope::Trace drawn_trace() {
  lanescope::testing::ProgramSketch program;
  for (int i = 0; i < 3; ++i)
    program.step()
        .begin("forward")
        .launch({.us = 40})
        .launch({.us = 10, .stream = 9})
        .launch(lanescope::testing::ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 5))
        .end()
        .pass(100)
        .end();
  return program.trace();
}

const TableSchema& any_table(Random& random) {
  const auto tables = lanescope::sql_tables();
  const auto views = lanescope::sql_views();
  const std::size_t at = random.below(tables.size() + views.size());
  return at < tables.size() ? tables[at] : views[at - tables.size()];
}

std::string any_column(const TableSchema& table, Random& random) {
  return std::string(table.columns[random.below(table.columns.size())].name);
}

std::string any_value(const TableSchema& table, Random& random) {
  switch (random.below(6)) {
    case 0:
      return std::to_string(static_cast<std::int64_t>(random.edge()));
    case 1:
      return std::to_string(random.below(40));
    case 2:
      return std::string(
          random.text({"'aten::mm'", "'gemm'", "'kernel'", "''", "'%m%'", "x'00ff'"}));
    case 3:
      return std::string(random.text({"NULL", "1e300", "-1e300", "0.5", "-0.0", "9e999",
                                      "9223372036854775807", "-9223372036854775808"}));
    case 4: {
      const std::string column = any_column(table, random);
      return random.one_in(2)
                 ? column
                 : "(SELECT " + column + " FROM " + std::string(table.name) + " LIMIT 1)";
    }
    default:
      return std::string(
          random.text({"extract_arg(arg_set_id, 'grid')", "extract_arg(-1, NULL)", "1000000 + 5",
                       "CAST(ts AS TEXT)", "length(name)", "hex(name)"}));
  }
}

std::string any_condition(const TableSchema& table, Random& random) {
  std::string text;
  for (std::size_t terms = 1 + random.below(3); terms > 0; --terms) {
    if (!text.empty()) text += random.text({" AND ", " AND ", " OR ", " AND NOT "});
    text += (random.one_in(8) ? "+" : "") + any_column(table, random);
    text += random.text(
        {" = ", " < ", " <= ", " > ", " >= ", " IS ", " IS NOT ", " LIKE ", " GLOB ", " != "});
    text += any_value(table, random);
    if (random.one_in(10)) text += " COLLATE NOCASE";
  }
  return text;
}

// A query that is nearly always valid.
std::string any_query(Random& random) {
  const TableSchema& table = any_table(random);
  const std::string column = any_column(table, random), other = any_column(table, random);
  const std::string name(table.name);
  std::string query = random.one_in(12) ? "EXPLAIN QUERY PLAN SELECT " : "SELECT ";
  const bool grouped = random.one_in(3);
  query += grouped            ? column + ", count(*), sum(" + other + "), max(" + other + ")"
           : random.one_in(3) ? "*"
                              : column + ", " + other;
  query += " FROM " + name;
  if (random.one_in(4)) {
    const TableSchema& second = any_table(random);
    query = "SELECT count(*) FROM " + name + " AS a JOIN " + std::string(second.name) +
            " AS b ON a." + column + " = b." + any_column(second, random);
    return query +
           (random.one_in(2) ? " WHERE a." + column + " > " + std::to_string(random.below(9)) : "");
  }
  if (!random.one_in(3)) query += " WHERE " + any_condition(table, random);
  if (grouped) query += " GROUP BY " + column + (random.one_in(3) ? ", " + other : "");
  if (random.one_in(2))
    query += " ORDER BY " + column +
             std::string(random.text({"", " DESC", " NULLS LAST", " COLLATE NOCASE"})) +
             (random.one_in(2) ? ", " + other + std::string(random.text({"", " DESC"})) : "");
  if (random.one_in(3)) query += " LIMIT " + std::to_string(random.below(50));
  return query;
}

std::string mutate_query(std::string_view text, Random& random) {
  if (random.one_in(3)) return any_query(random);
  if (random.one_in(6)) return std::string(text) + "; " + any_query(random);
  std::string mutated(text);
  for (std::size_t edits = 1 + random.below(3); edits > 0; --edits) {
    const std::size_t at = random.below(mutated.size() + 1);
    if (random.one_in(3))
      mutated.erase(at, 1 + random.below(8));
    else
      mutated.insert(
          at,
          random.text(
              {" ",
               ";",
               "(",
               ")",
               ",",
               "'",
               "\"",
               "*",
               "%",
               "--",
               "/*",
               "\xff",
               " UNION ALL ",
               " SELECT ",
               " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n ",
               " OVER (PARTITION BY track_id ORDER BY ts) ",
               " CASE WHEN 1 THEN ",
               " END ",
               " DELETE FROM slice ",
               " ATTACH 'x' AS y ",
               " PRAGMA writable_schema=1 ",
               " DROP TABLE op ",
               " CREATE TEMP TABLE t AS ",
               " json_each('[1]') ",
               " pragma_table_list ",
               " sqlite_master ",
               " replace(name, 'a', name) ",
               " printf('%1000000d', 1) ",
               " zeroblob(100000000) ",
               " EXISTS ",
               " IN (1, 2, NULL) ",
               " BETWEEN 1 AND 2 ",
               " USING(id) ",
               " LEFT JOIN slice ",
               " rowid "}));
  }
  return mutated;
}

// Takes at most 300 rows a statement, and reads all of their bytes.
class Reader : public lanescope::sql::RowSink {
 public:
  void begin(const std::vector<std::string>& columns) override {
    columns_ = columns.size();
    rows_ = 0;
    lanescope::fuzz::require(columns_ > 0, "a statement with rows has columns");
  }
  bool row(std::span<const Cell> cells) override {
    lanescope::fuzz::require(cells.size() == columns_, "each row has every column");
    for (const Cell& cell : cells)
      for (const char c : cell.text) sum_ += static_cast<unsigned char>(c);
    return ++rows_ < 300;
  }

 private:
  std::size_t columns_ = 0, rows_ = 0, sum_ = 0;
};

struct CountSlices : lanescope::sql::RowSink {
  std::int64_t count = -1;
  void begin(const std::vector<std::string>& /*columns*/) override {}
  bool row(std::span<const Cell> cells) override {
    count = cells[0].integer;
    return true;
  }
};

}  // namespace

LANESCOPE_FUZZ_MUTATOR(mutate_query)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  static const auto trace = std::make_shared<const Trace>(drawn_trace());
  static const std::unique_ptr<Database> database = [] {
    sql::limit_memory_of_process(std::int64_t{256} << 20);
    return *Database::open(trace);
  }();
  using Clock = std::chrono::steady_clock;
  Reader reader;
  const auto begin = Clock::now();
  const auto done =
      database->run(fuzz::view(data, size), {.timeout = std::chrono::milliseconds(20)}, reader);
  fuzz::require(Clock::now() - begin < std::chrono::seconds(60),
                "a query ends soon after its limit");
  if (!done) fuzz::require(!done.error().message.empty(), "an error has a sentence");
  CountSlices after;
  fuzz::require(database->run("SELECT count(*) FROM slice", {}, after).has_value() &&
                    after.count == static_cast<std::int64_t>(trace->slices().size()),
                "no query changes the tables");
  return 0;
}
