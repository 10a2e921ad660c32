// Queries over a trace, next to the same queries by SQLite over a copy of the same tables in memory.
//   sql_speed TRACE.json     medians of 10 runs after one that is not counted, in ms
// The peer's table has an index on ts, name and track_id, as its user would make.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "lanescope/format/read_trace.h"
#include "lanescope/sql/database.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRuns = 10;

struct Question {
  const char* what;
  std::string sql;
};

struct Counter : lanescope::sql::RowSink {
  std::size_t rows = 0;
  void begin(const std::vector<std::string>& /*columns*/) override {}
  bool row(std::span<const lanescope::sql::Cell> /*cells*/) override {
    ++rows;
    return true;
  }
};

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

struct Times {
  double first = 0, median = 0, worst = 0;
};

template <typename Run>
Times measure(Run run) {
  Times times;
  const auto begin = Clock::now();
  run();
  times.first = ms_since(begin);
  std::vector<double> all;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = Clock::now();
    run();
    all.push_back(ms_since(start));
  }
  std::sort(all.begin(), all.end());
  times.median = all[kRuns / 2];
  times.worst = all.back();
  return times;
}

int count_rows(void* rows, int /*count*/, char** /*cells*/, char** /*names*/) {
  ++*static_cast<std::size_t*>(rows);
  return 0;
}

std::vector<Question> questions(std::int64_t middle_ns, std::int64_t length_ns) {
  return {
      {"sum over all slices", "SELECT count(*), sum(dur), max(dur) FROM slice"},
      {"by name", "SELECT name, count(*), sum(dur) FROM slice GROUP BY name"},
      {"by name, most time first",
       "SELECT name, count(*), sum(dur) FROM slice GROUP BY name ORDER BY 3 DESC"},
      {"by track", "SELECT track_id, sum(dur) FROM slice GROUP BY track_id"},
      {"by category and name", "SELECT category, name, sum(dur) FROM slice GROUP BY 1, 2"},
      {"one name", "SELECT count(*), sum(dur) FROM slice WHERE name = 'aten::add'"},
      {"names with a pattern", "SELECT sum(dur) FROM slice WHERE name LIKE '%gemm%'"},
      {"1 % of the time",
       fmt::format("SELECT count(*), sum(dur) FROM slice WHERE ts BETWEEN {} AND {}", middle_ns,
                   middle_ns + length_ns / 100)},
      {"longest ten", "SELECT id, name, dur FROM slice ORDER BY dur DESC LIMIT 10"},
      {"kernels with their operators",
       "SELECT op.name, count(*), sum(kernel.dur) FROM kernel JOIN op ON kernel.op_id = op.id "
       "GROUP BY 1"},
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: sql_speed TRACE.json\n", stderr);
    return 2;
  }
  auto trace = lanescope::format::read_trace(argv[1]);
  if (!trace) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    return 1;
  }
  const auto shared = std::make_shared<const lanescope::Trace>(*std::move(trace));
  const auto database = lanescope::sql::Database::open(shared);
  if (!database) return 1;
  const std::string copy =
      (std::filesystem::temp_directory_path() / "lanescope_sql_speed.sqlite").string();
  std::filesystem::remove(copy);
  const auto begin = Clock::now();
  if (const auto saved = (*database)->save(copy); !saved) {
    std::fprintf(stderr, "%s\n", saved.error().message.c_str());
    return 1;
  }
  const double copied_ms = ms_since(begin);
  sqlite3* peer = nullptr;
  sqlite3_open(":memory:", &peer);
  sqlite3* file = nullptr;
  sqlite3_open_v2(copy.c_str(), &file, SQLITE_OPEN_READONLY, nullptr);
  sqlite3_backup* const backup = sqlite3_backup_init(peer, "main", file, "main");
  sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);
  sqlite3_close(file);
  sqlite3_exec(peer,
               "CREATE INDEX slice_ts ON slice(ts); CREATE INDEX slice_name ON slice(name);"
               "CREATE INDEX slice_track ON slice(track_id); ANALYZE",
               nullptr, nullptr, nullptr);
  std::filesystem::remove(copy);
  fmt::print(
      "{} slices; SQLite {}; copying all tables into SQLite took {:.0f} ms, and the indexes\n",
      shared->slices().size(), sqlite3_libversion(), copied_ms);
  fmt::print("{:<30} {:>10} {:>10} {:>10} {:>14}\n", "ms", "first", "median", "worst",
             "SQLite's copy");
  const std::int64_t start = shared->window_start_ns(), length = shared->window_end_ns() - start;
  for (const Question& one : questions(start + length / 2, length)) {
    std::size_t ours = 0, theirs = 0;
    const Times lanescope = measure([&] {
      Counter counter;
      if (const auto done = (*database)->run(one.sql, {}, counter); !done)
        std::fprintf(stderr, "%s\n", done.error().message.c_str());
      ours = counter.rows;
    });
    const Times sqlite = measure([&] {
      theirs = 0;
      sqlite3_exec(peer, one.sql.c_str(), count_rows, &theirs, nullptr);
    });
    fmt::print("{:<30} {:>10.1f} {:>10.1f} {:>10.1f} {:>14.1f}{}\n", one.what, lanescope.first,
               lanescope.median, lanescope.worst, sqlite.median,
               ours == theirs ? "" : "  DIFFERENT ROWS");
  }
  sqlite3_close(peer);
  return 0;
}
