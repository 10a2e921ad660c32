// A plan must find the rows that a full scan finds. "+column" hides a column from the planner, so
// the same query without plans is its own reference.
#include "lanescope/sql/query_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "lanescope/format/read_trace.h"
#include "lanescope/sql/query_rows_test.h"
#include "lanescope/testing/program_sketch.h"
#include "lanescope/testing/real_traces.h"

namespace lanescope::sql {
namespace {

struct Values : RowSink {
  std::vector<std::string> literals;
  void begin(const std::vector<std::string>&) override {}
  bool row(std::span<const Cell> cells) override {
    literals.push_back(cells[0].text.empty() && cells[0].type != CellType::kText
                           ? "NULL"
                           : std::string(cells[0].text));
    return true;
  }
};

// Some values of a column, as SQL literals.
std::vector<std::string> literals_of(Database& database, std::string_view table,
                                     std::string_view column) {
  Values values;
  const auto done = database.run(
      fmt::format("SELECT quote(v) FROM (SELECT DISTINCT +{1} AS v FROM {0}) ORDER BY v LIMIT 400",
                  table, column),
      {}, values);
  EXPECT_TRUE(done) << done.error().message;
  return values.literals;
}

void expect_same(Database& database, const std::string& planned, const std::string& scanned) {
  EXPECT_EQ(rows_of(database, planned), rows_of(database, scanned)) << planned;
}

void check_column(Database& database, const TableSource& table, const ColumnSource& column,
                  std::mt19937& random) {
  auto literals = literals_of(database, table.name, column.name);
  for (const char* const odd : {"NULL", "-1", "0.5", "1e300", "-1e300", "'x'", "''", "x'00'",
                                "9223372036854775807", "-9223372036854775808"})
    literals.emplace_back(odd);
  const std::string base = fmt::format("SELECT * FROM {} WHERE ", table.name);
  for (int i = 0; i < 6; ++i) {
    const std::string& a = literals[random() % literals.size()];
    const std::string& b = literals[random() % literals.size()];
    for (const char* const op : {"=", "<", "<=", ">", ">=", "IS"})
      expect_same(database, base + fmt::format("{} {} {}", column.name, op, a),
                  base + fmt::format("+{} {} {}", column.name, op, a));
    expect_same(database, base + fmt::format("{} BETWEEN {} AND {}", column.name, a, b),
                base + fmt::format("+{} BETWEEN {} AND {}", column.name, a, b));
    expect_same(database, base + fmt::format("{} IN ({}, {}) ORDER BY 1", column.name, a, b),
                base + fmt::format("+{} IN ({}, {}) ORDER BY +1", column.name, a, b));
  }
  const std::string values = fmt::format("SELECT {} FROM {} ORDER BY ", column.name, table.name);
  for (const char* const order : {"", " DESC"})
    expect_same(database, values + std::string(column.name) + order,
                values + "+" + std::string(column.name) + order);
  const std::string groups =
      fmt::format("SELECT {0}, count(*) FROM {1} GROUP BY ", column.name, table.name);
  expect_same(database, groups + std::string(column.name) + " ORDER BY 1",
              groups + "+" + std::string(column.name) + " ORDER BY 1");
}

void check_tables(Trace trace) {
  const auto database = database_of(std::move(trace));
  std::mt19937 random(5);
  for (const TableSource& table : table_sources())
    for (const ColumnSource& column : table.columns)
      if (column.use != ColumnUse::kPlain) check_column(*database, table, column, random);
}

Trace drawn() {
  testing::ProgramSketch program;
  for (int i = 0; i < 3; ++i)
    program.step()
        .begin("forward")
        .launch({.us = 40})
        .launch({.us = 10, .stream = 9})
        .launch(testing::ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 5))
        .end()
        .pass(100)
        .end();
  return program.trace();
}

TEST(QueryPlanTest, FindsTheRowsOfAFullScanInADrawnTrace) { check_tables(drawn()); }

TEST(QueryPlanTest, FindsTheRowsOfAFullScanInARealTrace) {
  const auto path = testing::shipped_traces() / "h200_64_bf16_warm_eager" / "trace.json";
  auto trace = format::read_trace(path);
  ASSERT_TRUE(trace) << trace.error().message;
  check_tables(*std::move(trace));
}

TEST(QueryPlanTest, TimeTrackAndOrderTogether) {
  const auto database = database_of(drawn());
  for (const char* const where : {"track_id = 0", "track_id = 1 AND id > 5", "ts > 1100000",
                                  "track_id >= 1 AND ts BETWEEN 1050000 AND 1400000", "id < 9"})
    for (const char* const order :
         {"ts", "ts DESC", "id DESC", "track_id, ts", "track_id DESC, ts DESC", "track_id, ts DESC",
          "name", "name, ts", "name, track_id", "name DESC, ts DESC", "ts, id", "ts, name"}) {
      const std::string tail = std::string(" ORDER BY ") + order;
      // Ties may come in any order, so only what is ordered by is compared.
      std::string columns = order;
      for (std::size_t at; (at = columns.find(" DESC")) != std::string::npos;) columns.erase(at, 5);
      const std::string query = "SELECT " + columns + " FROM slice WHERE ";
      const std::string hidden = "SELECT " + columns +
                                 " FROM (SELECT +id AS id, +ts AS ts, +track_id AS track_id, +name "
                                 "AS name FROM slice LIMIT 1000000) WHERE ";
      expect_same(*database, query + where + tail, hidden + where + tail);
    }
}

TEST(QueryPlanTest, APlanSurvivesItsText) {
  QueryPlan plan;
  plan.sorted_by = {3, 0};
  plan.reversed = true;
  plan.used = {{3, Comparison::kGreaterOrEqual, 0}, {3, Comparison::kLess, 1}};
  const QueryPlan read = parse_plan(plan_text(plan).c_str());
  EXPECT_EQ(read.sorted_by, plan.sorted_by);
  EXPECT_TRUE(read.reversed);
  ASSERT_EQ(read.used.size(), 2u);
  EXPECT_EQ(read.used[1].comparison, Comparison::kLess);
}

}  // namespace
}  // namespace lanescope::sql
