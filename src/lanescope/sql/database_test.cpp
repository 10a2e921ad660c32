#include "lanescope/sql/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "lanescope/model/table_schema.h"
#include "lanescope/sql/query_rows_test.h"
#include "lanescope/testing/program_sketch.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::sql {
namespace {

using ::testing::HasSubstr;
using testing::Sketch;

// An operator [0, 100) with a child [10, 40) that launches a kernel [50, 80) by a call [20, 30).
std::unique_ptr<Database> one_launch() {
  Sketch sketch;
  sketch.op("outer", 0, 100).op("inner", 10, 30, {.input_dims = "[[2, 3]]"});
  sketch.runtime("cudaLaunchKernel", 20, 10, {.correlation = 7});
  sketch.kernel("gemm", 50, 30, {.correlation = 7, .grid = "[4, 2, 1]", .registers = 32});
  return database_of(sketch.trace());
}

TEST(SqlDatabaseTest, SlicesHaveParentsDepthAndTimeOfTheirOwn) {
  const auto database = one_launch();
  EXPECT_EQ(rows_of(*database,
                    "SELECT name, ts, dur, depth, self_dur, (SELECT name FROM slice p "
                    "WHERE p.id = s.parent_id) FROM slice s ORDER BY ts"),
            "outer,0,100,0,70,\ninner,10,30,1,20,outer\ncudaLaunchKernel,20,10,2,10,inner\n"
            "gemm,50,30,,30,\n");
}

TEST(SqlDatabaseTest, LaunchJoinsKernelCallAndOperator) {
  const auto database = one_launch();
  EXPECT_EQ(
      rows_of(*database, "SELECT name, call_name, op_name, delay, device, stream FROM launch"),
      "gemm,cudaLaunchKernel,inner,30,0,7\n");
  EXPECT_EQ(rows_of(*database,
                    "SELECT grid_x, grid_y, grid_z, block_x, registers_per_thread, "
                    "correlation FROM kernel"),
            "4,2,1,,32,7\n");
  EXPECT_EQ(rows_of(*database, "SELECT name, self_dur, device_dur, input_dims FROM op ORDER BY id"),
            "outer,70,0,\ninner,20,30,\"[[2, 3]]\"\n");
}

TEST(SqlDatabaseTest, ArgumentsAreRowsAndAFunction) {
  const auto database = one_launch();
  EXPECT_EQ(rows_of(*database,
                    "SELECT key, int_value, string_value, value_type FROM args JOIN "
                    "kernel USING(arg_set_id) ORDER BY key"),
            "correlation,7,,int\ndevice,0,,int\ngrid,,\"[4, 2, 1]\",json\n"
            "registers per thread,32,,int\nstream,7,,int\n");
  EXPECT_EQ(rows_of(*database,
                    "SELECT extract_arg(arg_set_id, 'registers per thread'), "
                    "extract_arg(arg_set_id, 'none'), extract_arg(-1, 'grid'), "
                    "extract_arg(123456789012345, 'grid'), extract_arg(NULL, NULL) "
                    "FROM kernel"),
            "32,,,,\n");
}

// Perfetto writes the keys of JSON as args.KEY, and those of its own format as debug.KEY. A key of the file comes first.
TEST(SqlDatabaseTest, ArgumentsHaveTheirNamesInPerfettoToo) {
  const auto database = one_launch();
  EXPECT_EQ(
      rows_of(*database,
              "SELECT extract_arg(arg_set_id, 'args.stream'), "
              "extract_arg(arg_set_id, 'debug.registers per thread'), "
              "extract_arg(arg_set_id, 'args.'), extract_arg(arg_set_id, 'args.args.stream'), "
              "extract_arg(arg_set_id, 'xargs.stream') FROM kernel"),
      "7,32,,,\n");
}

// outer holds inner, which holds the call.
TEST(SqlDatabaseTest, SlicesAroundAndInsideOfOneAreFunctions) {
  const auto database = one_launch();
  EXPECT_EQ(rows_of(*database,
                    "SELECT a.name, a.depth FROM slice s JOIN ancestor_slice(s.id) a "
                    "WHERE s.name = 'cudaLaunchKernel'"),
            "outer,0\ninner,1\n");
  EXPECT_EQ(
      rows_of(*database,
              "SELECT name, parent_id IS NOT NULL FROM descendant_slice((SELECT id FROM slice "
              "WHERE name = 'outer')) ORDER BY ts"),
      "inner,1\ncudaLaunchKernel,1\n");
  EXPECT_EQ(rows_of(*database,
                    "SELECT s.name, count(d.id) FROM slice s LEFT JOIN descendant_slice(s.id) d "
                    "GROUP BY s.id ORDER BY s.ts"),
            "outer,2\ninner,1\ncudaLaunchKernel,0\ngemm,0\n");
  for (const char* none : {"-1", "4", "9999999999", "'x'", "NULL", "1.5"})
    EXPECT_EQ(rows_of(*database, std::string("SELECT count(*) FROM ancestor_slice(") + none + ")"),
              "0\n")
        << none;
}

TEST(SqlDatabaseTest, NamesThatOnlyPerfettoHasAreTranslated) {
  const auto database = one_launch();
  EXPECT_THAT(rows_of(*database, "SELECT * FROM thread_slice"),
              HasSubstr("there is no table 'thread_slice', which is Perfetto's; here it is slice "
                        "JOIN thread ON track_id = utid"));
  EXPECT_EQ(rows_of(*database, "INCLUDE PERFETTO MODULE slices.with_context"),
            "error: INCLUDE PERFETTO MODULE is of Perfetto alone; leave it out");
}

TEST(SqlDatabaseTest, StepsHaveTheWorkThatTheyLaunched) {
  testing::ProgramSketch program;
  for (int i = 0; i < 3; ++i) program.step().launch({.us = 40}).launch({.us = 20}).pass(100).end();
  const auto database = database_of(program.trace());
  EXPECT_EQ(rows_of(*database, "SELECT step, kernel_count, kernel_dur, copy_count FROM step_time"),
            "1,2,60000,0\n2,2,60000,0\n3,2,60000,0\n");
  EXPECT_EQ(rows_of(*database, "SELECT step, count(*) FROM op GROUP BY step"), "1,2\n2,2\n3,2\n");
}

TEST(SqlDatabaseTest, GapsAreTimesWithoutWorkOnAnyStream) {
  Sketch sketch;  // one stream [0, 10) and [30, 40), the other [5, 20)
  sketch.kernel("a", 0, 10, {.stream = 7}).kernel("c", 30, 10, {.stream = 7});
  sketch.kernel("b", 5, 15, {.stream = 8});
  const auto database = database_of(sketch.trace());
  EXPECT_EQ(rows_of(*database, "SELECT device, ts, dur, next_name FROM device_gap"), "0,20,10,c\n");
}

TEST(SqlDatabaseTest, MemoryEventsAreMarksOfAllocators) {
  Sketch sketch;
  sketch.memory_at(5, 100, {.address = 64, .allocated = 100, .reserved = 200});
  sketch.memory_at(9, -100, {.address = 64, .allocated = 0, .reserved = 200});
  const auto database = database_of(sketch.trace());
  EXPECT_EQ(rows_of(*database,
                    "SELECT ts, bytes, address, total_allocated, total_reserved FROM "
                    "memory_event"),
            "5,100,64,100,200\n9,-100,64,0,200\n");
}

TEST(SqlDatabaseTest, EveryTableOfAnEmptyTraceIsEmpty) {
  const auto database = database_of(Trace());
  for (const std::string_view table : Database::table_names())
    EXPECT_EQ(rows_of(*database, "SELECT * FROM " + std::string(table)), "") << table;
}

TEST(SqlDatabaseTest, WrongNamesAreAnsweredWithTheNearest) {
  const auto database = one_launch();
  EXPECT_THAT(rows_of(*database, "SELECT nam FROM kernel"), HasSubstr("did you mean name"));
  EXPECT_THAT(rows_of(*database, "SELECT k.xyzzy FROM kernel k"),
              HasSubstr("the tables of the query have id, ts"));
  EXPECT_THAT(rows_of(*database, "SELECT * FROM kernels"), HasSubstr("did you mean kernel"));
  EXPECT_THAT(rows_of(*database, "SELECT \"wrong\" FROM kernel"), HasSubstr("no column"));
  EXPECT_THAT(Database::schema_text("kernle").error().message, HasSubstr("did you mean kernel?"));
}

TEST(SqlDatabaseTest, NothingCanBeWritten) {
  const auto database = one_launch();
  const std::string file = ::testing::TempDir() + "/lanescope_sql_attached.sqlite";
  for (const std::string& query :
       {std::string("DELETE FROM slice"), std::string("INSERT INTO slice(id) VALUES (1)"),
        std::string("CREATE TABLE t(x)"), std::string("CREATE TEMP TABLE t(x)"),
        std::string("DROP TABLE slice"), "ATTACH '" + file + "' AS other",
        "VACUUM INTO '" + file + "'", std::string("PRAGMA journal_mode = WAL"),
        std::string("PRAGMA temp_store_directory = '/'"), std::string("SELECT load_extension('x')"),
        std::string("BEGIN"), std::string("ANALYZE"), std::string("PRAGMA writable_schema = 1"),
        std::string("ALTER TABLE slice RENAME TO s"),
        std::string("UPDATE sqlite_master SET sql = ''"), std::string("DELETE FROM sqlite_master"),
        std::string("CREATE VIEW v AS SELECT 1"),

        std::string("DETACH main"), std::string("SAVEPOINT s")})
    EXPECT_THAT(rows_of(*database, query), HasSubstr("error: ")) << query;
  EXPECT_FALSE(std::filesystem::exists(file));
  for (const char* const query : {"DELETE FROM slice", "DROP TABLE slice", "UPDATE op SET dur = 0"})
    EXPECT_THAT(rows_of(*database, query), HasSubstr("only reading is allowed"));
  EXPECT_EQ(rows_of(*database, "SELECT count(*) FROM slice"), "4\n");
}

constexpr char kEndless[] =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

TEST(SqlDatabaseTest, AnEndlessQueryEndsAtItsLimitOrWhenStopped) {
  const auto database = one_launch();
  EXPECT_THAT(rows_of(*database, kEndless, {.timeout = std::chrono::milliseconds(20)}),
              HasSubstr("stopped after 0.02 s"));
  EXPECT_THAT(rows_of(*database, kEndless, {.is_stopped = [] { return true; }}),
              HasSubstr("interrupted"));
  EXPECT_EQ(rows_of(*database, "SELECT 1"), "1\n");  // and the next one works
}

TEST(SqlDatabaseTest, LongTextsAndQueriesHaveALimit) {
  const auto database = one_launch();
  EXPECT_THAT(rows_of(*database, "SELECT zeroblob(1000000000)"), HasSubstr("16 MiB"));
  EXPECT_THAT(rows_of(*database, "SELECT " + std::string(2 << 20, ' ') + "1"), HasSubstr("1 MiB"));
  EXPECT_THAT(rows_of(*database, std::string("SELECT 1\0 FROM slice", 20)),
              HasSubstr("zero byte after 8 bytes"));
}

TEST(SqlDatabaseTest, ASinkCanStopAStatementAndTheNextOneRuns) {
  const auto database = one_launch();
  std::string text;
  const auto writer = make_result_writer({.form = ResultForm::kCsv, .row_limit = 1},
                                         [&](std::string_view part) { text += part; });
  ASSERT_TRUE(database->run("SELECT id FROM slice; SELECT 5 AS five", {}, *writer));
  EXPECT_EQ(text, "id\r\n0\r\n\r\nfive\r\n5\r\n");
}

TEST(SqlDatabaseTest, EveryTableAndColumnIsDeclaredToSqlite) {
  const auto database = one_launch();
  for (const auto& schemas : {sql_tables(), sql_views()})
    for (const TableSchema& table : schemas) {
      std::string names;
      for (const ColumnSchema& column : table.columns) names.append(column.name) += '\n';
      EXPECT_EQ(rows_of(*database,
                        "SELECT name FROM pragma_table_info('" + std::string(table.name) + "')"),
                names);
      EXPECT_TRUE(Database::schema_text(table.name));
    }
}

TEST(SqlDatabaseTest, ASavedFileHasTheSameRows) {
  const auto database = one_launch();
  const std::string path = ::testing::TempDir() + "/lanescope_sql_saved.sqlite";
  std::filesystem::remove(path);
  ASSERT_TRUE(database->save(path));
  EXPECT_EQ(database->save(path).error().code, Errc::kIo);  // never over a file
  EXPECT_EQ(database->save("/nonexistent/x.sqlite").error().code, Errc::kIo);
  EXPECT_THAT(rows_of(*database, "SELECT * FROM file.slice"), HasSubstr("error"));  // detached
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lanescope::sql
