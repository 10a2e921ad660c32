// The recorder from outside: what threads wrote is what a reader finds, whatever happened to
// the process meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "child_process.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler.h"
#include "lanescope/record/activity_source.h"
#include "lanescope/testing/sanitizers.h"
#include "lanescope/testing/wait_until.h"
#include "recording_folder.h"

extern char** environ;

namespace lanescope {
namespace {

using ::testing::HasSubstr;
using testing::in_child;
using testing::kThreadSanitizer;
using ::testing::UnorderedElementsAre;
using testing::wait_for;
using testing::wait_until;
namespace fs = std::filesystem;

class RecordTest : public RecordingFolderTest {
 protected:
};

std::map<std::string, std::uint64_t> counts(const Trace& trace) {
  std::map<std::string, std::uint64_t> found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) != CategoryKind::kTrace)
      ++found[std::string(trace.name(SliceId{i}))];
  return found;
}
// ---- Threads ----

TEST_F(RecordTest, EveryRangeOfEveryThreadIsThereOrCounted) {
  const int threads = 4, ranges = kThreadSanitizer ? 5'000 : 50'000;
  auto recorder = open({.ready_chunks = 200});
  ASSERT_TRUE(recorder->start());
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([t] {
      const std::string name = "thread" + std::to_string(t);
      for (int i = 0; i < (kThreadSanitizer ? 5'000 : 50'000); ++i) {
        const RecordFunction outer(name);
        LANESCOPE_RECORD_FUNCTION("inner");
      }
    });
  for (std::thread& worker : workers) worker.join();
  recorder->stop();
  recorder->close();
  const Trace trace = read();
  const auto found = counts(trace);
  std::uint64_t total = 0;
  for (const auto& [name, count] : found) total += count;
  const std::uint64_t dropped = issues(trace, ImportIssue::kDroppedRecords);
  EXPECT_EQ(dropped, recorder->stats().dropped_records);
  EXPECT_GE(total + dropped, 2u * threads * static_cast<unsigned>(ranges));
  if (dropped == 0) {
    EXPECT_EQ(total, 2u * threads * static_cast<unsigned>(ranges));
    EXPECT_EQ(found.at("thread3"), static_cast<std::uint64_t>(ranges));
    EXPECT_EQ(issues(trace, ImportIssue::kOpenRange), 0u);
  }
  EXPECT_EQ(issues(trace, ImportIssue::kChecksumMismatch), 0u);
  EXPECT_EQ(issues(trace, ImportIssue::kOpenChunk), 0u);
}

TEST_F(RecordTest, ARangeMayOutliveItsChunk) {
  auto recorder = open({.ready_chunks = 64});
  ASSERT_TRUE(recorder->start());
  {
    const RecordFunction outer("outer");
    for (int i = 0; i < 10'000; ++i) LANESCOPE_RECORD_FUNCTION("inner");  // 2728 fit in a chunk
  }
  recorder->stop();
  recorder->close();
  const Trace trace = read();
  EXPECT_THAT(counts(trace),
              UnorderedElementsAre(std::pair("outer", 1u), std::pair("inner", 10'000u)));
  const SliceId outer = find(trace, "outer");
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == "inner") {
      EXPECT_GE(trace.end_ns(outer), trace.end_ns(SliceId{i}));
    }
  EXPECT_LT(trace.end_ns(outer), trace.window_end_ns());
  EXPECT_EQ(issues(trace, ImportIssue::kOpenRange), 0u);
}

TEST_F(RecordTest, RangesWithoutATokenEndByStackByHandleAndFromAnotherThread) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  const auto begin = [](const char* name, std::uint64_t handle) {
    record::RangeInfo info;
    info.name = lanescope_intern(name, strlen(name), nullptr);
    info.handle = handle;
    record::begin_nested(info);
  };
  begin("a", 0);
  begin("b", 11);
  begin("c", 12);
  begin("d", 0);
  begin("async", 13);
  std::thread([] { record::end_nested(13); }).join();
  record::end_nested(11);  // out of order: c and d stay open
  record::end_nested(13);  // its end was seen elsewhere already; here it leaves the stack
  record::end_nested();    // d
  record::end_nested();    // c
  record::end_nested();    // a
  record::end_nested();    // nothing is open: nothing happens
  recorder->stop();
  recorder->close();
  const Trace trace = read();
  EXPECT_EQ(trace.slices().size(), 5u + 1u);  // and the window's span
  EXPECT_EQ(issues(trace, ImportIssue::kOpenRange), 0u);
  const auto end = [&](const char* name) { return trace.end_ns(find(trace, name)); };
  EXPECT_LT(end("b"), end("d"));
  EXPECT_LE(end("d"), end("c"));
  EXPECT_LE(end("c"), end("a"));
}

TEST_F(RecordTest, RangesBeyondTheDeepestLevelAreCounted) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  record::RangeInfo info;
  info.name = lanescope_intern("deep", 4, nullptr);
  for (int i = 0; i < 300; ++i) record::begin_nested(info);
  for (int i = 0; i < 300; ++i) record::end_nested();
  recorder->stop();
  EXPECT_EQ(recorder->stats().depth_overflow, 300u - kLanescopeStackDepth);
  recorder->close();
  const Trace trace = read();
  EXPECT_EQ(counts(trace).at("deep"), kLanescopeStackDepth);
  EXPECT_EQ(issues(trace, ImportIssue::kOpenRange), 0u);
  EXPECT_EQ(issues(trace, ImportIssue::kDroppedRecords), 300u - kLanescopeStackDepth);
}

TEST_F(RecordTest, WindowsOpenAndCloseWhileThreadsRecord) {
  auto recorder = open({.ready_chunks = 200});
  recorder->prepare();
  std::atomic<bool> end{false};
  std::atomic<std::uint64_t> rounds{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < 3; ++t)
    workers.emplace_back([&] {
      while (!end.load(std::memory_order_relaxed)) {
        {
          const RecordFunction outer("outer");
          LANESCOPE_RECORD_FUNCTION("inner");
        }
        ++rounds;
        std::this_thread::yield();
      }
    });
  for (int cycle = 0; cycle < 20; ++cycle) {
    ASSERT_TRUE(recorder->start());
    // Two rounds lie in the window whole: three of these may have begun before it.
    const std::uint64_t before = rounds;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_TRUE(wait_until([&] { return rounds >= before + 5; }));
    recorder->stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(recorder->window_count(), 20u);
  recorder->close();  // threads still try
  end = true;
  for (std::thread& worker : workers) worker.join();
  const Trace trace = read();
  EXPECT_EQ(issues(trace, ImportIssue::kChecksumMismatch), 0u);
  EXPECT_EQ(issues(trace, ImportIssue::kOpenChunk), 0u);
  const std::uint64_t dropped = issues(trace, ImportIssue::kDroppedRecords);
  EXPECT_LE(issues(trace, ImportIssue::kOpenRange), 20u * 3u * 2u + dropped);
  EXPECT_GE(counts(trace).at("inner") + dropped, 2 * 20u);
}

// ---- Limits ----

TEST_F(RecordTest, TheSizeLimitHoldsAndWhatDidNotFitIsCounted) {
  auto recorder = open({.max_bytes = 2u << 20});
  ASSERT_TRUE(recorder->start());
  for (int i = 0; i < 100'000; ++i) LANESCOPE_RECORD_FUNCTION("x");
  recorder->stop();
  const record::RecorderStats stats = recorder->stats();
  recorder->close();
  const Trace trace = read();
  EXPECT_GT(stats.dropped_records, 0u);
  EXPECT_EQ(counts(trace).at("x") + stats.dropped_records, 100'000u);
  EXPECT_EQ(issues(trace, ImportIssue::kDroppedRecords), stats.dropped_records);
  EXPECT_LE(fs::file_size(recorder->spool_path()), 2u << 20);
  ASSERT_FALSE(recorder->notes().empty());
}

TEST_F(RecordTest, TheLimitOnFileSizesOfTheProcessDoesNotKillIt) {
  const int status = wait_for(in_child([&] {
    const rlimit limit{1u << 20, 1u << 20};
    setrlimit(RLIMIT_FSIZE, &limit);  // growing beyond raises SIGXFSZ, which kills
    auto recorder = open();
    if (!recorder->start()) return 1;
    for (int i = 0; i < 100'000; ++i) LANESCOPE_RECORD_FUNCTION("x");
    recorder->stop();
    return recorder->stats().dropped_records > 0 ? 0 : 2;
  }));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const Trace trace = read();
  EXPECT_EQ(counts(trace).at("x") + issues(trace, ImportIssue::kDroppedRecords), 100'000u);
}

TEST_F(RecordTest, AFullDiskIsCountedAndHurtsNobody) {
  const int status = wait_for(in_child([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=1500k") != 0)
      return 77;
    auto recorder = open({.disk_reserve_bytes = 0});
    if (!recorder->start()) return 1;
    for (int i = 0; i < 100'000; ++i) LANESCOPE_RECORD_FUNCTION("x");
    recorder->stop();
    const std::uint64_t dropped = recorder->stats().dropped_records;
    recorder->close();
    const Trace trace = read();
    if (dropped == 0) return 2;
    return counts(trace).at("x") + dropped == 100'000 ? 0 : 3;
  }));
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs the right to mount a tmpfs";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

std::uint64_t resident_bytes() {
  std::uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * 4096;
}

TEST_F(RecordTest, MemoryStaysBoundedWhileTheFileGrows) {
  auto recorder = open({.ready_chunks = 16});
  recorder->prepare();
  ASSERT_TRUE(recorder->start());
  const std::uint64_t before = resident_bytes();
  std::uint64_t most = 0;
  // Where the recorder's thread is late, records are dropped and the file grows slowly.
  EXPECT_TRUE(wait_until([&] {
    for (int i = 0; i < 4'000; ++i) LANESCOPE_RECORD_FUNCTION("x");
    most = std::max(most, resident_bytes());
    return recorder->stats().file_bytes > 80u << 20;
  }));
  recorder->stop();
  // At most 128 prepared chunks of 128 KiB and as many full ones, and change.
  EXPECT_LT(most - std::min(most, before), 40u << 20);
}

// ---- The process ends ----

struct Progress {
  std::atomic<std::uint64_t> begun[3], ended[3];
};

TEST_F(RecordTest, AKilledProcessLeavesEveryCommittedRange) {
  auto* progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(progress, MAP_FAILED);
  std::mt19937 random(20240817);
  std::uint64_t all = 0;
  for (int kill_number = 0; kill_number < 24; ++kill_number) {
    const fs::path where = directory_ / std::to_string(kill_number);
    for (int t = 0; t < 3; ++t) progress->begun[t] = progress->ended[t] = 0;
    const pid_t child = in_child([&] {
      auto recorder = record::Recorder::open({.directory = where.string(), .ready_chunks = 128});
      if (!recorder || !(*recorder)->start()) return 1;
      for (int t = 0; t < 3; ++t)
        std::thread([t, progress] {
          const std::string name = "thread" + std::to_string(t);
          for (std::uint64_t i = 1;; ++i) {
            const RecordFunction range(i % 1000 == 0 ? name + "_" + std::to_string(i) : name);
            progress->begun[t].store(i, std::memory_order_release);
            for (volatile int spin = 0; spin < 40;) spin = spin + 1;
            if (i % 64 == 0) std::this_thread::yield();
          }
        }).detach();
      for (;;) pause();
    });
    ASSERT_TRUE(wait_until(
        [&] { return progress->begun[0] + progress->begun[1] + progress->begun[2] != 0; }));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    kill(child, SIGKILL);
    wait_for(child);
    const auto spools = format::find_spools(where);
    ASSERT_TRUE(spools && spools->size() == 1);
    const auto trace = format::read_spool(spools->at(0));
    ASSERT_TRUE(trace) << trace.error().message;
    std::uint64_t found[3] = {}, begun[3] = {}, found_all = 0, begun_all = 0;
    for (const auto& [name, count] : counts(*trace)) {
      ASSERT_EQ(name.substr(0, 6), "thread") << "a name was lost";
      found[name[6] - '0'] += count;
    }
    for (int t = 0; t < 3; ++t) {
      begun[t] = progress->begun[t];
      found_all += found[t];
      begun_all += begun[t];
    }
    const std::uint64_t dropped = issues(*trace, ImportIssue::kDroppedRecords);
    EXPECT_GE(found_all + dropped, begun_all) << "kill " << kill_number;
    EXPECT_LE(found_all, begun_all + 3) << "kill " << kill_number;  // begun, but not reported yet
    for (int t = 0; t < 3 && dropped == 0; ++t)
      EXPECT_GE(found[t], begun[t]) << "kill " << kill_number;
    EXPECT_LE(issues(*trace, ImportIssue::kOpenRange), 3u + dropped);
    EXPECT_EQ(issues(*trace, ImportIssue::kChecksumMismatch), 0u);
    EXPECT_GE(issues(*trace, ImportIssue::kOpenChunk), 1u);
    all += found_all;
  }
  EXPECT_GT(all, 24u);
  munmap(progress, sizeof(Progress));
}

TEST_F(RecordTest, AProgramThatExitsWhileRecordingKeepsItsWindow) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = in_child([&] {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    auto* profiler = new Profiler({.output_dir = directory_.string()});
    if (!profiler->start()) return 1;
    { LANESCOPE_RECORD_FUNCTION("seen"); }
    exit(0);
  });
  close(ends[1]);
  std::string line(4096, '\0');
  line.resize(
      static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], line.data(), line.size()))));
  close(ends[0]);
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_THAT(line, HasSubstr("what it saw is in " + directory_.string()));
  const Trace trace = read();
  EXPECT_THAT(counts(trace), UnorderedElementsAre(std::pair("seen", 1u)));
  EXPECT_EQ(issues(trace, ImportIssue::kOpenChunk), 0u);
}

TEST_F(RecordTest, ForkedChildrenDoNotRecordAndDoNotDisturb) {
  auto profiler = std::make_unique<Profiler>(ProfilerOptions{.output_dir = directory_.string()});
  ASSERT_TRUE(profiler->start());
  std::atomic<bool> end{false};
  std::atomic<std::uint64_t> recorded{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < 2; ++t)
    workers.emplace_back([&] {
      while (!end.load(std::memory_order_relaxed)) {
        {
          LANESCOPE_RECORD_FUNCTION("parent");
        }
        recorded.fetch_add(1, std::memory_order_relaxed);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
  for (int round = 0; round < 24; ++round) {
    RecordFunction around_fork("around fork");
    int status = -1;
    if (round % 4 == 3) {
      pid_t child = 0;
      char program[] = "/bin/true";
      char* arguments[] = {program, nullptr};
      ASSERT_EQ(posix_spawn(&child, program, nullptr, nullptr, arguments, environ), 0);
      status = wait_for(child);
    } else {
      // Round 2: a fork that runs no handlers, so the child has only what the kernel gives it.
      fflush(nullptr);
      const pid_t child = round % 4 == 2 ? static_cast<pid_t>(syscall(SYS_fork)) : fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        for (int i = 0; i < 100; ++i) LANESCOPE_RECORD_FUNCTION("child");
        around_fork.end();
        if (round % 4 == 0) {
          profiler->step();
          profiler.reset();  // must not finish or remove the parent's file
        }
        _exit(round % 4 != 2 && record::is_recording() ? 1 : 0);
      }
      status = wait_for(child);
    }
    EXPECT_EQ(status, 0) << "round " << round;
  }
  end = true;
  for (std::thread& worker : workers) worker.join();
  profiler->stop();
  const Trace trace = read();
  EXPECT_THAT(counts(trace), UnorderedElementsAre(std::pair("parent", recorded.load()),
                                                  std::pair("around fork", 24u)));
  EXPECT_FALSE(trace.import_stats().lost_anything());
  EXPECT_EQ(issues(trace, ImportIssue::kOpenRange), 0u);
}

TEST_F(RecordTest, AForkedChildMayRecordOnItsOwn) {
  if (kThreadSanitizer)
    GTEST_SKIP()
        << "needs a build without the thread sanitizer, which allows no new thread in a child of a "
           "threaded process";
  Profiler parent;
  ASSERT_TRUE(parent.start());
  { LANESCOPE_RECORD_FUNCTION("parent"); }
  const int status = wait_for(in_child([&] {
    Profiler profiler({.output_dir = directory_.string()});
    if (!profiler.start()) return 1;
    { LANESCOPE_RECORD_FUNCTION("child"); }
    profiler.stop();
    return 0;
  }));
  EXPECT_EQ(status, 0);
  parent.stop();
  EXPECT_THAT(counts(read()), UnorderedElementsAre(std::pair("child", 1u)));
  EXPECT_THAT(counts(**parent.trace()), UnorderedElementsAre(std::pair("parent", 1u)));
}

// ---- Sources ----

struct FakeSource {
  std::vector<std::string> calls;
  int prepare_result = 0;
  LanescopeActivitySource table{};
  explicit FakeSource(const char* name) {
    table.abi = LANESCOPE_RECORD_ABI;
    table.activities = LANESCOPE_ACTIVITY_CPU;
    table.name = name;
    table.self = this;
    table.prepare = [](void* self, std::uint32_t, char* line, std::size_t size) {
      auto* source = static_cast<FakeSource*>(self);
      source->calls.push_back("prepare");
      if (source->prepare_result != 0) snprintf(line, size, "not on this machine");
      return source->prepare_result;
    };
    table.start = [](void* self, std::uint32_t options, char*, std::size_t) {
      static_cast<FakeSource*>(self)->calls.push_back("start " + std::to_string(options));
      return 0;
    };
    table.stop = [](void* self) { static_cast<FakeSource*>(self)->calls.push_back("stop"); };
    table.cost_line = [](void*, char* line, std::size_t size) {
      snprintf(line, size, "cost nothing");
      return 0;
    };
  }
};

TEST_F(RecordTest, SourcesArePreparedOnceStartedWithEachWindowAndTheirFailureIsALine) {
  FakeSource good("good"), bad("bad"), old("old");
  bad.prepare_result = 1;
  old.table.abi = LANESCOPE_RECORD_ABI + 1;
  EXPECT_EQ(lanescope_register_source(&good.table), 0);
  EXPECT_EQ(lanescope_register_source(&bad.table), 0);
  EXPECT_EQ(lanescope_register_source(&old.table), 1);
  EXPECT_EQ(lanescope_register_source(&good.table), 3);
  auto recorder = open({.activities = LANESCOPE_ACTIVITY_CPU, .options = LANESCOPE_RECORD_SHAPES});
  recorder->prepare();
  for (int window = 0; window < 2; ++window) {
    ASSERT_TRUE(recorder->start());
    EXPECT_EQ(record::record_options(), LANESCOPE_RECORD_SHAPES);
    recorder->stop();
  }
  recorder->close();
  lanescope_unregister_source(&good.table);
  lanescope_unregister_source(&bad.table);
  EXPECT_THAT(good.calls, ::testing::ElementsAre("prepare", "start 1", "stop", "start 1", "stop"));
  EXPECT_THAT(bad.calls, ::testing::Each("prepare"));
  const Trace trace = read();
  EXPECT_THAT(std::string(*trace.metadata_json("lanescope_notes")),
              HasSubstr("bad: not on this machine"));
  EXPECT_THAT(std::string(*trace.metadata_json("lanescope_notes")),
              HasSubstr("good: cost nothing"));
  EXPECT_EQ(trace.metadata_json("record_shapes"), "1");
}

}  // namespace
}  // namespace lanescope
