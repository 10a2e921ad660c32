// Files are made here with the columns that NVIDIA documents for exports of Nsight Systems 2021 to 2025.
#include "lanescope/format/nsys_sqlite/read_nsys_sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::format {
namespace {

using ::testing::HasSubstr;

// The bytes of a database that these statements make.
std::string database_of(const std::string& sql) {
  // Tests run at the same time, each in a process of its own.
  const std::string path =
      ::testing::TempDir() + "/lanescope_nsys_test_" + std::to_string(getpid()) + ".sqlite";
  std::filesystem::remove(path);
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_close(database);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

constexpr char kStrings[] =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
    "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'gemm<float>(int)'), (3, "
    "'gemm'),  (4, 'step'), (5, 'cuMemcpyHtoDAsync_v2'), (6, 'main thread');";
// Process 100 and thread 101: 0x64 << 24 | 0x65.
constexpr char kExport[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, eventClass INT, globalTid INT,"
    "  correlationId INT, nameId INT, returnValue INT, callchainId INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 1400, 0, 0x64000065, 7, 1, 0, NULL),"
    "  (2000, 2100, 1, 0x64000065, 8, 5, 0, NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, contextId INT,"
    "  streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT,"
    "  registersPerThread INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT,"
    "  staticSharedMemory INT, dynamicSharedMemory INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1500, 1900, 0, 1, 7, 7, 0x64000000, 2, 3, 32,"
    "  4, 2, 1, 128, 1, 1, 1024, 256);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT, contextId INT,"
    "  streamId INT, correlationId INT, globalPid INT, bytes INT, copyKind INT, srcKind INT, "
    "dstKind INT);INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (2200, 2300, 0, 1, 7, 8, "
    "0x64000000, 4096, 1, 0, 2);CREATE TABLE ENUM_CUDA_MEM_KIND(id INT, name TEXT, label TEXT);"
    "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'X', 'Pageable'), (2, 'Y', 'Device');"
    "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, textId INT, globalTid "
    "INT);INSERT INTO NVTX_EVENTS VALUES (900, 2500, 59, NULL, 4, 0x64000065), (950, 960, 59, "
    "'inner', "
    "NULL, 0x64000065),"
    "  (970, NULL, 34, 'mark', NULL, 0x64000065), (980, NULL, 59, 'open', NULL, 0x64000065),"
    "  (1, NULL, 75, 'a domain', NULL, 0x64000065);"
    "CREATE TABLE TARGET_INFO_GPU(id INT, cuDevice INT, name TEXT, totalMemory INT, smCount INT);"
    "INSERT INTO TARGET_INFO_GPU VALUES (5, 0, 'NVIDIA H200 \"x\"', 150000000000, 132);"
    "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INT);"
    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1790000000000000000);"
    "CREATE TABLE ThreadNames(nameId INT, priority INT, globalTid INT);"
    "INSERT INTO ThreadNames VALUES (6, 0, 0x64000065), (6, 0, 0x99000099);"
    "CREATE TABLE PROCESSES(globalPid INT, pid INT, name TEXT);"
    "INSERT INTO PROCESSES VALUES (0x64000000, 100, 'python3'), (0x99000000, 153, 'other');";

std::string whole_export() { return database_of(std::string(kStrings) + kExport); }

SliceId slice_named(const Trace& trace, std::string_view name) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name) return SliceId{i};
  return kNone<SliceId>;
}

TEST(NsysSqliteTest, AWaitForAllStreamsIsOnNoStream) {
  const auto trace = read_trace_bytes(database_of(
      std::string(kStrings) + kExport +
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INT, end INT, deviceId INT,"
      "  contextId INT, streamId INT, correlationId INT, syncType INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (3000, 3100, 0, 1, 4294967295, 9, 4);"
      "CREATE TABLE ENUM_CUPTI_SYNC_TYPE(id INT, name TEXT, label TEXT);"
      "INSERT INTO ENUM_CUPTI_SYNC_TYPE VALUES (4, 'X', 'Context sync');"));
  ASSERT_TRUE(trace) << trace.error().message;
  const SliceId wait = slice_named(*trace, "Context sync");
  ASSERT_NE(wait, kNone<SliceId>);
  EXPECT_EQ(trace->track(wait).stream, -1);
  EXPECT_EQ(trace->slice_args(wait).integer(ArgKey::kStream), -1);
}

TEST(NsysSqliteTest, KernelsCopiesCallsAndRangesBecomeSlices) {
  auto trace = read_trace_bytes(whole_export());
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->base_time_ns(), 1790000000000000000);
  EXPECT_EQ(trace->slices().size(), 7u);
  const SliceId kernel = slice_named(*trace, "gemm<float>(int)");
  ASSERT_NE(kernel, kNone<SliceId>);
  EXPECT_EQ(trace->start_ns(kernel), 1500);
  EXPECT_EQ(trace->dur_ns(kernel), 400);
  EXPECT_EQ(trace->kind(kernel), CategoryKind::kKernel);
  EXPECT_EQ(trace->track(kernel).stream, 7);
  EXPECT_EQ(trace->track(kernel).device, 0);
  const ArgsView args = trace->slice_args(kernel);
  EXPECT_EQ(args.integer(ArgKey::kCorrelation), 7);
  EXPECT_EQ(args.integer(ArgKey::kSharedMemory), 1280);
  EXPECT_EQ(trace->text(*args.text(ArgKey::kGrid)), "[4, 2, 1]");
  const SliceId call = slice_named(*trace, "cudaLaunchKernel");
  ASSERT_NE(call, kNone<SliceId>);
  EXPECT_EQ(trace->kind(call), CategoryKind::kRuntime);
  EXPECT_EQ(trace->text(trace->track(call).name), "main thread");
  EXPECT_EQ(trace->text(trace->process(trace->track(call).process).name), "python3");
  EXPECT_EQ(trace->kind(slice_named(*trace, "cuMemcpyHtoDAsync_v2")), CategoryKind::kDriver);
  const SliceId copy = slice_named(*trace, "Memcpy HtoD (Pageable -> Device)");
  ASSERT_NE(copy, kNone<SliceId>);
  EXPECT_EQ(trace->slice_args(copy).integer(ArgKey::kBytes), 4096);
  EXPECT_EQ(trace->dur_ns(slice_named(*trace, "step")), 1600);
  EXPECT_EQ(trace->dur_ns(slice_named(*trace, "open")), 2500 - 980);  // until the last range ends
  EXPECT_EQ(trace->import_stats()[ImportIssue::kOpenRange].count, 1u);
  EXPECT_EQ(trace->instants().size(), 1u);
  EXPECT_THAT(std::string(*trace->metadata_json("deviceProperties")),
              HasSubstr("{\"id\": 0, \"name\": \"NVIDIA H200 x\", \"totalGlobalMem\": "
                        "150000000000, \"numSms\": 132}"));
}

// Several batches of calls and ranges, some with a text of their own, so another thread reads ahead.
TEST(NsysSqliteTest, TheTraceIsTheSameForAnyNumberOfThreads) {
  const std::string whole = database_of(
      std::string(kStrings) + kExport +
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) INSERT INTO "
      "CUPTI_ACTIVITY_KIND_RUNTIME SELECT 5000 + 10 * i, 5005 + 10 * i, 0, 0x64000065 + i % 3, i, "
      "1 "
      "+ i % 7, 0, NULL FROM n;"
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4999) INSERT INTO "
      "NVTX_EVENTS SELECT 5000 + 10 * i, 5009 + 10 * i, 59, iif(i % 2, 'range ' || i, NULL), 4, "
      "0x64000065 FROM n;");
  const auto texts = [](const std::string& bytes) {
    std::vector<std::string> found;
    for (const unsigned threads : {1u, 2u}) {
      ReadOptions options;
      options.threads = threads;
      const auto trace = read_trace_bytes(bytes, options);
      found.push_back(trace ? kineto_json_text(*trace) : trace.error().message);
    }
    return found;
  };
  const auto read = texts(whole);
  EXPECT_THAT(read[0], HasSubstr("range 4999"));
  EXPECT_EQ(read[0], read[1]);
  std::mt19937 random(5);
  for (int i = 0; i < 40; ++i) {
    std::string damaged = whole;
    for (int flips = 0; flips < 4; ++flips)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto of_damaged = texts(damaged);
    EXPECT_EQ(of_damaged[0], of_damaged[1]) << i;
  }
}

// A number of a text may be -1; a call without one has no name.
TEST(NsysSqliteTest, CallsAreNamedByTheirNumberAndCountedWithoutOne) {
  const auto trace = read_trace_bytes(database_of(
      "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
      "INSERT INTO StringIds VALUES (-1, 'cudaMalloc_v3020'), (1, 'cuInit');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, nameId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 5, NULL), (3, 4, 5, 9), (5, 6, 5, "
      "-1), "
      "(7, 8, 5, 9), (9, 10, 5, 1), (11, 12, 5, -1);"));
  ASSERT_TRUE(trace) << trace.error().message;
  std::vector<std::string_view> names;
  for (std::uint32_t i = 0; i < trace->slices().size(); ++i)
    names.push_back(trace->name(SliceId{i}));
  EXPECT_THAT(names, ::testing::ElementsAre("", "", "cudaMalloc", "", "cuInit", "cudaMalloc"));
  EXPECT_EQ(trace->kind(SliceId{4}), CategoryKind::kDriver);
  EXPECT_EQ(trace->kind(SliceId{5}), CategoryKind::kRuntime);
  EXPECT_EQ(trace->import_stats()[ImportIssue::kMissingName].count, 3u);
}

TEST(NsysSqliteTest, MissingTablesAndColumnsLeaveTheRest) {
  auto trace =
      read_trace_bytes(database_of("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, "
                                   "deviceId INT, streamId INT, shortName INT);"
                                   "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 0, 7, 3), "
                                   "(NULL, 5, 0, 7, 3), (9, 8, 0, 7, NULL),"
                                   "  (-9223372036854775807, 9223372036854775807, 0, 7, 3);"));
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->slices().size(), 2u);
  EXPECT_EQ(trace->import_stats()[ImportIssue::kEventLost].count, 2u);
  EXPECT_EQ(trace->import_stats()[ImportIssue::kNegativeDuration].count, 1u);
}

TEST(NsysSqliteTest, OtherDatabasesAreNamedAndRefused) {
  const auto other = read_trace_bytes(database_of("CREATE TABLE rocpd_op(x INT)"), {}, "x.sqlite");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::kUnsupported);
  EXPECT_THAT(other.error().message, HasSubstr("found an SQLite database of rocprof"));
  const auto empty = read_trace_bytes(database_of("CREATE TABLE t(x INT)"), {}, "x.sqlite");
  EXPECT_THAT(empty.error().message, HasSubstr("found an SQLite database"));
}

TEST(NsysSqliteTest, NothingOfTheFileRuns) {
  // A view with the name of a table, and a column that computes.
  auto trace = read_trace_bytes(database_of(
      "CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS SELECT 1 AS start, 2 AS end, 3 AS globalTid;"
      "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, globalTid INT, textId INT,"
      "  text TEXT AS (hex(zeroblob(1000000))));"
      "INSERT INTO NVTX_EVENTS(start, end, eventType, globalTid) VALUES (1, 2, 59, 5);"));
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->slices().size(), 1u);
  EXPECT_EQ(trace->name(SliceId{0}), "");
}

TEST(NsysSqliteTest, DamagedFilesEndInAnErrorOrInWhatCouldBeRead) {
  const std::string whole = whole_export();
  for (std::size_t size = 0; size < whole.size(); size += 997) {
    const auto cut = read_trace_bytes(whole.substr(0, size));
    EXPECT_LE(cut ? cut->slices().size() : 0, 7u) << size;
  }
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    std::string damaged = whole;
    for (int flips = 0; flips < 8; ++flips)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    static_cast<void>(read_trace_bytes(damaged));
  }
}

}  // namespace
}  // namespace lanescope::format
