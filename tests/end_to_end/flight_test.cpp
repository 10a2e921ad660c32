// Recordings that keep their last seconds: bounded for ever, whole within these seconds, readable
// whatever happens to the process, and copied while threads write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler.h"
#include "lanescope/testing/sanitizers.h"

namespace lanescope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using std::chrono::milliseconds;

using testing::kSanitizers;
constexpr std::int64_t kMs = 1'000'000;

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

class FlightTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::temp_directory_path() /
                 ("lanescope_flight_" + std::string(info->name()) + "_" + std::to_string(getpid()));
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::unique_ptr<record::Recorder> open(record::RecorderOptions options) const {
    options.spool_path = (directory_ / "ring.lspool").string();
    auto recorder = record::Recorder::open(options);
    EXPECT_TRUE(recorder) << recorder.error().message;
    return std::move(recorder).value();
  }
  static Trace read(const fs::path& path, const format::ReadSpoolOptions& options = {}) {
    auto trace = format::read_spool(path, options);
    EXPECT_TRUE(trace) << trace.error().message;
    return std::move(trace).value();
  }
  Trace read() const { return read(directory_ / "ring.lspool"); }
  fs::path directory_;
};

std::uint64_t issues(const Trace& trace, ImportIssue issue) {
  return trace.import_stats()[issue].count;
}
void expect_undamaged(const Trace& trace) {
  for (const ImportIssue issue :
       {ImportIssue::kChecksumMismatch, ImportIssue::kTruncatedFile, ImportIssue::kEventLost,
        ImportIssue::kMissingField, ImportIssue::kBadTime, ImportIssue::kLostBegin})
    EXPECT_EQ(issues(trace, issue), 0u) << import_issue_info(issue).name;
}
SliceId find(const Trace& trace, std::string_view name) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name) return SliceId{i};
  return kNone<SliceId>;
}

// A range that carries its number.
record::RangeToken begin(std::uint32_t name, std::int64_t number, std::uint64_t handle = 0) {
  record::RangeInfo info;
  info.name = name;
  info.flags = spool::kHasSequence;
  info.sequence_number = number;
  info.handle = handle;
  return record::begin_range(info);
}
std::uint32_t id_of(const std::string& name) {
  return lanescope_intern(name.data(), name.size(), nullptr);
}
// The numbers of all ranges of that name, in the order of their begins.
std::vector<std::int64_t> numbers(const Trace& trace, std::string_view name) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name)
      found.emplace_back(
          trace.start_ns(SliceId{i}),
          trace.slice_args(SliceId{i}).integer(ArgKey::kSequenceNumber).value_or(-1));
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::int64_t> result;
  for (const auto& [start, number] : found) result.push_back(number);
  return result;
}
void expect_no_gap(const std::vector<std::int64_t>& found) {
  for (std::size_t i = 1; i < found.size(); ++i)
    ASSERT_EQ(found[i], found[i - 1] + 1) << "at " << i << " of " << found.size();
}

pid_t in_child(const std::function<int()>& body) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}
int wait_for(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}
bool wait_until(const std::function<bool()>& what) {
  for (int tries = 0; tries < 20'000; ++tries) {
    if (what()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

// ---- Bounded and exact ----

TEST_F(FlightTest, TheFileStaysBoundedAndHoldsExactlyTheLastMoments) {
  constexpr std::int64_t kLast = 300 * kMs;
  const int bursts = kSanitizers ? 400 : 2500, per_burst = 2000;
  auto recorder = open({.ready_chunks = 64, .last_ns = kLast});
  recorder->prepare();
  ASSERT_TRUE(recorder->start());
  const std::uint32_t name = id_of("work");
  struct Burst {
    std::int64_t before_ns, after_ns;  // of all its ranges' begins
  };
  std::vector<Burst> log;
  std::uint64_t most_bytes = 0;
  std::int64_t number = 0;
  for (int burst = 0; burst < bursts; ++burst) {
    const std::int64_t before = now_ns();
    for (int i = 0; i < per_burst; ++i) record::end_range(begin(name, number++));
    log.push_back({before, now_ns()});
    std::this_thread::sleep_for(std::chrono::microseconds(700));
    most_bytes = std::max(most_bytes, recorder->stats().file_bytes);
  }
  const std::int64_t stop_before = now_ns();
  recorder->stop();
  const std::int64_t stop_after = now_ns();
  recorder->close();

  // The most bursts that began within the kept time at any moment, and a 64th of it, and as much
  // again for what is looked at in rounds; the prepared chunks; what is not records.
  std::size_t most_bursts = 0, first = 0;
  for (std::size_t i = 0; i < log.size(); ++i) {
    while (log[first].after_ns < log[i].after_ns - kLast - kLast / 16) ++first;
    most_bursts = std::max(most_bursts, i - first + 1);
  }
  const std::uint64_t bound =
      most_bursts * per_burst * sizeof(spool::Record) + (64 * 8 + 16) * spool::kChunkBytes;
  EXPECT_LT(most_bytes, bound);
  if (!kSanitizers) {
    EXPECT_GT(static_cast<std::uint64_t>(number) * sizeof(spool::Record), 2 * most_bytes);
  }
  EXPECT_LE(fs::file_size(directory_ / "ring.lspool"), most_bytes);

  const Trace trace = read();
  expect_undamaged(trace);
  const std::vector<std::int64_t> found = numbers(trace, "work");
  ASSERT_FALSE(found.empty());
  // On a busy machine the recorder's thread may be late; then records are missing, and counted.
  const std::uint64_t dropped = recorder->stats().dropped_records;
  EXPECT_LE(static_cast<std::uint64_t>(number - found.front()) - found.size(), dropped);
  if (dropped == 0) {
    expect_no_gap(found);
    EXPECT_EQ(found.back(), number - 1);
  }
  // The first one is of a burst that reaches into the last 300 ms before the stop, and no burst
  // that lies in them whole is missing. The window's mark is made between the two readings.
  const auto burst_of = [&](std::int64_t n) {
    return log[static_cast<std::size_t>(n / per_burst)];
  };
  EXPECT_GE(burst_of(found.front()).after_ns, stop_before - kLast - kMs / 100);
  if (found.front() > per_burst && dropped == 0) {
    EXPECT_LE(burst_of(found.front() - per_burst).before_ns, stop_after - kLast + kMs / 100);
  }
  EXPECT_NEAR(static_cast<double>(trace.window_end_ns() - trace.window_start_ns()), kLast, 1000);
  EXPECT_EQ(issues(trace, ImportIssue::kOpenChunk), 0u);
}

TEST_F(FlightTest, ARingThatIsShorterThanItsTimeHoldsEverything) {
  auto recorder = open({.last_ns = 3600'000 * kMs});
  ASSERT_TRUE(recorder->start());
  const std::uint32_t name = id_of("work");
  for (int i = 0; i < 10'000; ++i) record::end_range(begin(name, i));
  recorder->stop();
  recorder->close();
  EXPECT_THAT(recorder->notes(), ElementsAre());
  const Trace trace = read();
  EXPECT_EQ(numbers(trace, "work").size(), 10'000u);
  EXPECT_EQ(issues(trace, ImportIssue::kEarlyRange), 0u);
}

TEST_F(FlightTest, LongOpenRangesSurviveTheirChunk) {
  constexpr std::int64_t kLast = 100 * kMs;
  auto recorder = open({.ready_chunks = 32, .last_ns = kLast});
  recorder->prepare();
  ASSERT_TRUE(recorder->start());
  const std::uint32_t inner = id_of("inner");
  const auto work_for = [&](std::int64_t ns) {
    for (const std::int64_t until = now_ns() + ns; now_ns() < until;) {
      for (int i = 0; i < 500; ++i) record::end_range(begin(inner, i));
      std::this_thread::sleep_for(milliseconds(1));
    }
  };
  const auto outer = begin(id_of("outer"), 1);  // never ends
  const auto ended = begin(id_of("ended"), 2);  // ends in the kept time
  const auto early = begin(id_of("early"), 3);  // ends long before it, in another chunk
  begin(id_of("elsewhere"), 4, 77);             // ends by handle on another thread
  begin(id_of("elsewhere early"), 5, 78);
  record::RangeInfo nested;
  nested.name = id_of("nested");
  record::begin_nested(nested);
  work_for(60 * kMs);
  record::end_range(early);
  std::thread([] { record::end_nested(78); }).join();
  work_for(500 * kMs);
  const std::int64_t before_end = now_ns();
  record::end_range(ended);
  std::thread([] { record::end_nested(77); }).join();
  const std::int64_t after_end = now_ns();
  work_for(30 * kMs);
  const std::int64_t stopped = now_ns();
  recorder->stop();
  EXPECT_EQ(recorder->stats().lost_open_ranges, 0u);
  recorder->close();
  static_cast<void>(outer);
  const Trace trace = read();
  expect_undamaged(trace);
  // outer, ended, elsewhere, nested; two of them are open to the end.
  EXPECT_EQ(issues(trace, ImportIssue::kEarlyRange), 4u);
  EXPECT_EQ(issues(trace, ImportIssue::kOpenRange), 2u);
  EXPECT_EQ(find(trace, "early"), kNone<SliceId>);
  EXPECT_EQ(find(trace, "elsewhere early"), kNone<SliceId>);
  for (const char* name : {"outer", "nested", "ended", "elsewhere"}) {
    const SliceId id = find(trace, name);
    ASSERT_NE(id, kNone<SliceId>) << name;
    EXPECT_EQ(trace.start_ns(id), trace.window_start_ns()) << name;
  }
  EXPECT_EQ(trace.end_ns(find(trace, "outer")), trace.window_end_ns());
  // It began 560 ms of work before the stop, 100 ms of them are kept.
  const auto args = trace.slice_args(find(trace, "outer"));
  EXPECT_GT(args.integer(ArgKey::kSequenceNumber), 0);
  for (const char* name : {"ended", "elsewhere"}) {
    const std::int64_t before_stop = trace.window_end_ns() - trace.end_ns(find(trace, name));
    EXPECT_GE(before_stop, stopped - after_end - kMs) << name;
    EXPECT_LE(before_stop, stopped - before_end + 5 * kMs) << name;
  }
}

TEST_F(FlightTest, WithTooLittleRoomTheOldestGoesAndTheRestIsWhole) {
  constexpr std::uint64_t kRoom = 4u << 20;  // 31 chunks
  auto recorder = open({.max_bytes = kRoom, .last_ns = 60'000 * kMs});
  recorder->prepare();
  ASSERT_TRUE(recorder->start());
  const std::uint32_t name = id_of("work");
  std::int64_t number = 0;
  for (int burst = 0; burst < 400; ++burst) {
    for (int i = 0; i < 1000; ++i) record::end_range(begin(name, number++));
    std::this_thread::sleep_for(milliseconds(2));
  }
  recorder->stop();
  // On a machine that starves the background thread no chunk is ready in time: dropped, counted.
  const bool dropped = recorder->stats().dropped_records != 0;
  EXPECT_LE(recorder->stats().file_bytes, kRoom);
  recorder->close();
  EXPECT_THAT(recorder->notes(), ElementsAre(HasSubstr("of the 60 s asked for; more did not fit")));
  const Trace trace = read();
  expect_undamaged(trace);
  const std::vector<std::int64_t> found = numbers(trace, "work");
  ASSERT_GT(found.size(), 31u * 2730 / 2);  // more than half of the room is the newest records
  if (!dropped) {
    expect_no_gap(found);
    EXPECT_EQ(found.back(), number - 1);
  }
  EXPECT_LE(fs::file_size(directory_ / "ring.lspool"), kRoom);
}

TEST_F(FlightTest, TheSmallestRingWorks) {
  EXPECT_FALSE(record::Recorder::open(
      {.directory = directory_.string(), .max_bytes = 1000, .last_ns = kMs}));
  EXPECT_FALSE(record::Recorder::open({.directory = directory_.string(), .last_ns = -1}));
  auto recorder = open({.max_bytes = 1u << 20, .last_ns = 60'000 * kMs});
  ASSERT_TRUE(recorder->start());
  const std::uint32_t name = id_of("work");
  for (int i = 0; i < 100'000; ++i) {
    record::end_range(begin(name, i));
    if (i % 500 == 0) std::this_thread::sleep_for(milliseconds(2));
  }
  recorder->stop();
  recorder->close();
  const std::vector<std::int64_t> found = numbers(read(), "work");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back(), 99'999);
  EXPECT_LE(fs::file_size(directory_ / "ring.lspool"), 1u << 20);
}

TEST_F(FlightTest, ManyThreadsAndOneThatSleeps) {
  constexpr std::int64_t kLast = 150 * kMs;
  auto recorder = open({.ready_chunks = 64, .last_ns = kLast});
  recorder->prepare();
  ASSERT_TRUE(recorder->start());
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> last[6] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      const std::uint32_t name = id_of("thread" + std::to_string(t));
      for (std::int64_t i = 0; !stop; ++i) {
        record::end_range(begin(name, i));
        last[t] = i;
        if (i % 200 == 0) std::this_thread::sleep_for(milliseconds(1));
      }
    });
  std::thread sleeper([&] {
    const std::uint32_t name = id_of("sleeper");
    record::end_range(begin(name, 0));
    while (!stop) std::this_thread::sleep_for(milliseconds(1));
    record::end_range(begin(name, 1));
  });
  // Threads that come and go leave their chunks.
  for (int i = 0; i < 60; ++i) {
    std::thread([&] { record::end_range(begin(id_of("short"), i)); }).join();
    std::this_thread::sleep_for(milliseconds(10));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  sleeper.join();
  recorder->stop();
  ASSERT_EQ(recorder->stats().dropped_records, 0u);
  // Without a ring, the short threads alone would have taken 60 chunks.
  recorder->close();
  const Trace trace = read();
  expect_undamaged(trace);
  for (int t = 0; t < 6; ++t) {
    const auto found = numbers(trace, "thread" + std::to_string(t));
    ASSERT_FALSE(found.empty());
    expect_no_gap(found);
    EXPECT_GT(found.front(), 0);
    EXPECT_EQ(found.back(), last[t]);
  }
  EXPECT_THAT(numbers(trace, "sleeper"), ElementsAre(1));
  const auto shorts = numbers(trace, "short");
  expect_no_gap(shorts);
  EXPECT_LE(shorts.size(), 16u);  // 10 ms and more each
  EXPECT_EQ(shorts.back(), 59);
}

TEST_F(FlightTest, AProfilerWithinARingKeepsAllOfItsWindow) {
  constexpr std::int64_t kLast = 50 * kMs;
  auto recorder = open({.ready_chunks = 16, .last_ns = kLast});
  ASSERT_TRUE(recorder->start());
  const std::uint32_t name = id_of("work");
  std::int64_t number = 0;
  const auto work = [&] {
    for (int burst = 0; burst < 100; ++burst) {
      for (int i = 0; i < 500; ++i) record::end_range(begin(name, number++));
      std::this_thread::sleep_for(milliseconds(1));
    }
  };
  work();
  Profiler inner;
  ASSERT_TRUE(inner.start());
  const std::int64_t first = number;
  work();
  inner.stop();
  const std::int64_t last = number - 1;
  work();
  recorder->stop();
  auto trace = inner.trace();  // of a copy: the ring is still there
  ASSERT_TRUE(trace) << trace.error().message;
  auto found = numbers(**trace, "work");
  ASSERT_EQ(found.size(), 50'000u);
  EXPECT_EQ(found.front(), first);
  EXPECT_EQ(found.back(), last);
  recorder->close();
  format::ReadSpoolOptions ring;
  ring.session = recorder->session();
  found = numbers(read(directory_ / "ring.lspool", ring), "work");
  ASSERT_FALSE(found.empty());
  EXPECT_LT(found.size(), 50'000u);
  EXPECT_EQ(found.back(), number - 1);
}

// ---- Dumps ----

TEST_F(FlightTest, ADumpWhileThreadsWriteIsWhole) {
  constexpr std::int64_t kLast = 200 * kMs;
  auto recorder = open({.ready_chunks = 128, .last_ns = kLast});
  recorder->prepare();
  ASSERT_TRUE(recorder->start());
  std::atomic<bool> stop{false}, rest{false};
  std::atomic<std::int64_t> done[4];
  for (auto& one : done) one = -1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::uint32_t name = id_of("thread" + std::to_string(t));
      for (std::int64_t i = 0; !stop; ++i) {
        const auto token = begin(name, i);
        begin(id_of("text " + std::to_string(t) + " " + std::to_string(i % 5000)), i);
        record::end_range(token);
        done[t].store(i, std::memory_order_release);
        if (i % 300 == 0) std::this_thread::sleep_for(milliseconds(1));
        while (rest && !stop) std::this_thread::sleep_for(milliseconds(1));
      }
    });
  for (int dump = 0; dump < (kSanitizers ? 2 : 6); ++dump) {
    rest = false;
    std::this_thread::sleep_for(milliseconds(300));  // longer than what is kept
    const std::string path = (directory_ / (std::to_string(dump) + ".copy")).string();
    std::int64_t before[4], after[4];
    for (int t = 0; t < 4; ++t) before[t] = done[t].load(std::memory_order_acquire);
    const auto dumped = recorder->dump(path);
    ASSERT_TRUE(dumped) << dumped.error().message;
    for (int t = 0; t < 4; ++t) after[t] = done[t].load(std::memory_order_acquire);
    rest = true;  // reading needs the processors more
    const Trace trace = read(path);
    expect_undamaged(trace);
    EXPECT_EQ(issues(trace, ImportIssue::kOpenChunk), 0u);
    for (int t = 0; t < 4; ++t) {
      const auto found = numbers(trace, "thread" + std::to_string(t));
      if (recorder->stats().dropped_records != 0) continue;
      if (found.empty()) {  // a machine that did not let this thread run for the whole time kept
        EXPECT_EQ(before[t], after[t]);
        continue;
      }
      expect_no_gap(found);
      EXPECT_GE(found.back(), before[t]);
      EXPECT_LE(found.back(), after[t] + 1);
    }
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
      ASSERT_GE(trace.start_ns(SliceId{i}), trace.window_start_ns());
      ASSERT_LE(trace.end_ns(SliceId{i}), trace.window_end_ns());
    }
    EXPECT_NEAR(static_cast<double>(trace.window_end_ns() - trace.window_start_ns()),
                static_cast<double>(kLast), 1e6);
  }
  EXPECT_FALSE(recorder->dump((directory_ / "0.copy").string())) << "exists";
  EXPECT_FALSE(recorder->dump((directory_ / "none" / "x").string()));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  recorder->stop();
  recorder->close();
  EXPECT_FALSE(recorder->dump((directory_ / "late").string()));
  for (const auto& entry : fs::directory_iterator(directory_))
    EXPECT_NE(entry.path().extension(), ".part");
}

TEST_F(FlightTest, ASignalMakesADumpWhileTheProgramHangs) {
  const int status = wait_for(in_child([&] {
    auto recorder = open({.last_ns = 500 * kMs, .dump_signal = SIGUSR2, .quiet_dumps = true});
    if (!recorder->start()) return 1;
    const auto hang = begin(id_of("hang"), 1);
    record::end_range(begin(id_of("work"), 7));
    kill(getpid(), SIGUSR2);
    if (!wait_until([&] { return recorder->dumps().size() == 1; })) return 2;
    const std::string path = recorder->dumps().at(0);
    if (path != (directory_ / "ring_dump1.lspool").string()) return 3;
    const Trace trace = read(path);
    if (numbers(trace, "work").size() != 1 || numbers(trace, "hang").size() != 1) return 4;
    kill(getpid(), SIGUSR2);
    if (!wait_until([&] { return recorder->dumps().size() == 2; })) return 5;
    record::end_range(hang);
    recorder->stop();
    recorder->close();
    kill(getpid(), SIGUSR2);  // too late, and harmless
    return recorder->dumps().size() == 2 ? 0 : 6;
  }));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

void own_handler(int) {}
TEST_F(FlightTest, TheProgramsOwnHandlerStays) {
  const int status = wait_for(in_child([&] {
    signal(SIGUSR2, own_handler);
    auto recorder = open({.last_ns = 500 * kMs, .dump_signal = SIGUSR2});
    if (!recorder->start()) return 1;
    kill(getpid(), SIGUSR2);
    std::this_thread::sleep_for(milliseconds(30));
    if (!recorder->dumps().empty()) return 2;
    if (recorder->notes() !=
        std::vector<std::string>{
            "SIGUSR2 makes no dumps: the program has a handler of its own for it"})
      return 3;
    struct sigaction known {};
    sigaction(SIGUSR2, nullptr, &known);
    return known.sa_handler == own_handler ? 0 : 4;
  }));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(FlightTest, ASlowStepMakesADumpThatCoversIt) {
  Profiler profiler({.spool_path = (directory_ / "ring.lspool").string(),
                     .last_ns = 2000 * kMs,
                     .quiet_dumps = true,
                     .slow_step = 3});
  ASSERT_TRUE(profiler.start());
  const auto run_step = [&](int step, int ms) {
    record::end_range(begin(id_of("step"), step));
    std::this_thread::sleep_for(milliseconds(ms));
    profiler.step();
  };
  run_step(0, 300);  // before 8 steps are known nothing is slow
  for (int step = 1; step < 10; ++step) run_step(step, 10);
  run_step(10, 200);
  run_step(11, 200);  // slow too, but within 2 s of the last dump
  ASSERT_TRUE(wait_until([&] { return profiler.dumps().size() == 1; }));
  profiler.stop();
  ASSERT_THAT(profiler.dumps(), ElementsAre((directory_ / "ring_dump1.lspool").string()));
  const Trace trace = read(profiler.dumps().at(0));
  const auto steps = numbers(trace, "step");
  EXPECT_THAT(steps, ::testing::Contains(10));
  const std::string why(trace.metadata_json("lanescope_dump").value_or(""));
  EXPECT_THAT(why, HasSubstr("step 10 took "));
  EXPECT_THAT(why, HasSubstr("the median of the 10 steps before it"));
}

TEST_F(FlightTest, OptionsThatContradictAreErrors) {
  const auto message = [](ProfilerOptions options) {
    const auto started = Profiler(std::move(options)).start();
    return started ? "" : started.error().message;
  };
  EXPECT_THAT(message({.schedule = *schedule({.active = 1}), .last_ns = kMs}),
              HasSubstr("a schedule chooses its steps beforehand"));
  EXPECT_THAT(message({.slow_step = 2}), HasSubstr("say how much it keeps"));
  EXPECT_THAT(message({.last_ns = kMs, .slow_step = 1}), HasSubstr("more than 1 times"));
}

// ---- The process ends ----

TEST_F(FlightTest, AKilledRingIsReadLikeAFinishedOne) {
  constexpr std::int64_t kLast = 100 * kMs;
  auto* done = static_cast<std::atomic<std::int64_t>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int kill_number = 0; kill_number < 6; ++kill_number) {
    fs::remove(directory_ / "ring.lspool");
    *done = 0;
    const pid_t child = in_child([&] {
      auto recorder = open({.ready_chunks = 32, .last_ns = kLast});
      if (!recorder->start()) return 1;
      const auto outer = begin(id_of("outer"), 1);
      static_cast<void>(outer);
      const std::uint32_t name = id_of("work");
      for (std::int64_t i = 0;; ++i) {
        record::end_range(begin(name, i));
        done->store(i, std::memory_order_release);
        if (i % 1000 == 0) std::this_thread::sleep_for(milliseconds(1));
      }
    });
    ASSERT_TRUE(wait_until([&] { return *done > 100'000 + 7'777 * kill_number; }));
    kill(child, SIGKILL);
    wait_for(child);
    const Trace trace = read();
    expect_undamaged(trace);
    const auto found = numbers(trace, "work");
    ASSERT_FALSE(found.empty());
    EXPECT_GE(found.back(), *done);
    if (issues(trace, ImportIssue::kDroppedRecords) == 0) expect_no_gap(found);
    EXPECT_GT(found.front(), 0);
    ASSERT_NE(find(trace, "outer"), kNone<SliceId>);
    EXPECT_EQ(trace.start_ns(find(trace, "outer")), trace.window_start_ns());
    EXPECT_NEAR(static_cast<double>(trace.window_end_ns() - trace.window_start_ns()),
                static_cast<double>(kLast), 1e6);
  }
  munmap(done, 4096);
}

TEST_F(FlightTest, AForkedChildLeavesTheRingAlone) {
  auto recorder = open({.last_ns = 1000 * kMs, .quiet_dumps = true});
  ASSERT_TRUE(recorder->start());
  const std::uint32_t name = id_of("work");
  record::end_range(begin(name, 0));
  const int status = wait_for(in_child([&] {
    record::end_range(begin(name, 99));
    if (recorder->dump((directory_ / "child").string())) return 1;
    recorder->request_dump("from the child");
    return recorder->dumps().empty() ? 0 : 2;
  }));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  record::end_range(begin(name, 1));
  recorder->request_dump("from the parent");
  EXPECT_TRUE(wait_until([&] { return recorder->dumps().size() == 1; }));
  recorder->stop();
  recorder->close();
  EXPECT_THAT(numbers(read(), "work"), ElementsAre(0, 1));
  EXPECT_THAT(numbers(read(recorder->dumps().at(0)), "work"), ElementsAre(0, 1));
}

TEST_F(FlightTest, OnAFullDiskTheRingIsShorter) {
  const int status = wait_for(in_child([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=6m") != 0)
      return 77;
    auto recorder = open({.ready_chunks = 4, .last_ns = 60'000 * kMs, .quiet_dumps = true});
    if (!recorder->start()) return 1;
    const std::uint32_t name = id_of("work");
    for (int i = 0; i < 300'000; ++i) {
      record::end_range(begin(name, i));
      if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    if (recorder->dump((directory_ / "copy").string())) return 2;  // no room for it
    if (fs::exists(directory_ / "copy") || fs::exists(directory_ / "copy.part")) return 3;
    recorder->stop();
    recorder->close();
    if (recorder->notes().size() != 1) return 4;
    const Trace trace = read();
    const auto found = numbers(trace, "work");
    if (found.empty() || found.back() != 299'999) return 5;
    return found.size() > 10'000 ? 0 : 6;
  }));
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs the right to mount a tmpfs";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lanescope
