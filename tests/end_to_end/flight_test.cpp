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

#include "child_process.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler.h"
#include "lanescope/testing/sanitizers.h"
#include "recording_folder.h"

namespace lanescope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using std::chrono::milliseconds;

using testing::in_child;
using testing::kSanitizers;
using testing::wait_for;
using testing::wait_until;
constexpr std::int64_t kMs = 1'000'000;

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

class FlightTest : public RecordingFolderTest {
 protected:
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

// A machine may let a thread wait for longer than a ring reaches. What needs it within that time is
// tried with rings of more and more time: `attempt` says whether the machine was fast enough.
void with_longer_and_longer_rings(std::int64_t last_ns,
                                  const std::function<bool(std::int64_t)>& attempt) {
  for (; last_ns < 20'000 * kMs; last_ns *= 4)
    if (attempt(last_ns) || ::testing::Test::HasFailure()) return;
  FAIL() << "not even with the longest";
}
// Ranges of that name until one is not dropped: on a machine that starves the recorder's thread no
// chunk is ready in time. The number of that one.
std::int64_t record_until_kept(const record::Recorder& recorder, std::uint32_t name,
                               std::int64_t number) {
  const auto kept = [&] {
    const std::uint64_t dropped = recorder.stats().dropped_records;
    record::end_range(begin(name, number++));
    return recorder.stats().dropped_records == dropped;
  };
  return wait_until(kept) ? number - 1 : -1;
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
  // On a busy machine the recorder's thread may be late; then records are missing, and counted.
  const std::uint64_t dropped = recorder->stats().dropped_records;
  if (found.empty()) {  // nor did it let us stop within the time kept
    EXPECT_TRUE(dropped != 0 || log.back().before_ns < stop_after - kLast);
    return;
  }
  EXPECT_LE(static_cast<std::uint64_t>(number - found.front()) - found.size(), dropped);
  if (dropped == 0) {
    expect_no_gap(found);
    EXPECT_EQ(found.back(), number - 1);
  }
  // The first one is of a burst that reaches into the last 300 ms before the stop, and no burst
  // that is wholly in them is missing. The window's mark is made between the two readings.
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
  with_longer_and_longer_rings(100 * kMs, [&](std::int64_t kept_ns) {
    fs::remove(directory_ / "ring.lspool");
    auto recorder = open({.ready_chunks = 32, .last_ns = kept_ns});
    recorder->prepare();
    EXPECT_TRUE(recorder->start());
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
    work_for(kept_ns / 2);
    record::end_range(early);
    std::thread([] { record::end_nested(78); }).join();
    work_for(5 * kept_ns);
    const std::int64_t before_end = now_ns();
    record::end_range(ended);
    std::thread([] { record::end_nested(77); }).join();
    const std::int64_t after_end = now_ns();
    work_for(kept_ns / 4);
    const std::int64_t stopping = now_ns();
    recorder->stop();
    const std::int64_t stopped = now_ns();
    const record::RecorderStats stats = recorder->stats();
    recorder->close();
    static_cast<void>(outer);
    if (stats.dropped_records != 0 || stopped - before_end > kept_ns - kMs) return false;
    EXPECT_EQ(stats.lost_open_ranges, 0u);
    const Trace trace = read();
    expect_undamaged(trace);
    // outer, ended, elsewhere, nested; two of them are open to the end. And the inner one within
    // which the window begins, if there is one: on a busy machine it may be long.
    std::uint64_t early_inner = 0;
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
      early_inner += trace.name(SliceId{i}) == "inner" &&
                     trace.start_ns(SliceId{i}) == trace.window_start_ns();
    EXPECT_LE(early_inner, 1u);
    EXPECT_GE(issues(trace, ImportIssue::kEarlyRange), 4u);
    EXPECT_LE(issues(trace, ImportIssue::kEarlyRange), 4u + early_inner);
    EXPECT_EQ(issues(trace, ImportIssue::kOpenRange), 2u);
    EXPECT_EQ(find(trace, "early"), kNone<SliceId>);
    EXPECT_EQ(find(trace, "elsewhere early"), kNone<SliceId>);
    for (const char* name : {"outer", "nested", "ended", "elsewhere"}) {
      const SliceId id = find(trace, name);
      EXPECT_NE(id, kNone<SliceId>) << name;
      if (id == kNone<SliceId>) return true;
      EXPECT_EQ(trace.start_ns(id), trace.window_start_ns()) << name;
    }
    EXPECT_EQ(trace.end_ns(find(trace, "outer")), trace.window_end_ns());
    // It began more than five times the kept time before the stop.
    const auto args = trace.slice_args(find(trace, "outer"));
    EXPECT_GT(args.integer(ArgKey::kSequenceNumber), 0);
    for (const char* name : {"ended", "elsewhere"}) {
      const std::int64_t before_stop = trace.window_end_ns() - trace.end_ns(find(trace, name));
      EXPECT_GE(before_stop, stopping - after_end - kMs) << name;
      EXPECT_LE(before_stop, stopped - before_end + kMs) << name;
    }
    return true;
  });
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
  const std::int64_t last = record_until_kept(*recorder, name, 100'000);
  recorder->stop();
  recorder->close();
  const std::vector<std::int64_t> found = numbers(read(), "work");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back(), last);
  EXPECT_LE(fs::file_size(directory_ / "ring.lspool"), 1u << 20);
}

TEST_F(FlightTest, ManyThreadsAndOneThatSleeps) {
  with_longer_and_longer_rings(150 * kMs, [&](std::int64_t kept_ns) {
    fs::remove(directory_ / "ring.lspool");
    const std::chrono::nanoseconds pause(kept_ns / 150);
    auto recorder = open({.ready_chunks = 64, .last_ns = kept_ns});
    recorder->prepare();
    EXPECT_TRUE(recorder->start());
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> last[6] = {}, first_ended_ns[6] = {}, last_began_ns[6] = {};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        const std::uint32_t name = id_of("thread" + std::to_string(t));
        for (std::int64_t i = 0; !stop; ++i) {
          last_began_ns[t] = now_ns();
          record::end_range(begin(name, i));
          last[t] = i;
          if (i == 0) first_ended_ns[t] = now_ns();
          if (i % 200 == 0) std::this_thread::sleep_for(pause);
        }
      });
    std::int64_t sleeper_began_ns = 0;
    std::thread sleeper([&] {
      const std::uint32_t name = id_of("sleeper");
      record::end_range(begin(name, 0));
      while (!stop) std::this_thread::sleep_for(milliseconds(1));
      sleeper_began_ns = now_ns();
      record::end_range(begin(name, 1));
    });
    // Threads that come and go leave their chunks.
    std::int64_t short_began_ns = 0;
    for (int i = 0; i < 60; ++i) {
      short_began_ns = now_ns();
      std::thread([&] { record::end_range(begin(id_of("short"), i)); }).join();
      std::this_thread::sleep_for(10 * pause);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    sleeper.join();
    recorder->stop();
    const std::int64_t stopped = now_ns();
    const std::uint64_t dropped = recorder->stats().dropped_records;
    // Without a ring, the short threads alone would have taken 60 chunks.
    recorder->close();
    std::int64_t oldest = std::min(sleeper_began_ns, short_began_ns);
    for (const auto& began_ns : last_began_ns) oldest = std::min(oldest, began_ns.load());
    if (dropped != 0 || stopped - oldest > kept_ns - kMs) return false;
    for (const auto& ended_ns : first_ended_ns)
      if (stopped - ended_ns < 2 * kept_ns) return false;
    const Trace trace = read();
    expect_undamaged(trace);
    for (int t = 0; t < 6; ++t) {
      const auto found = numbers(trace, "thread" + std::to_string(t));
      EXPECT_FALSE(found.empty());
      if (found.empty()) return true;
      expect_no_gap(found);
      EXPECT_GT(found.front(), 0);
      EXPECT_EQ(found.back(), last[t]);
    }
    EXPECT_THAT(numbers(trace, "sleeper"), ElementsAre(1));
    const auto shorts = numbers(trace, "short");
    EXPECT_FALSE(shorts.empty());
    if (shorts.empty()) return true;
    expect_no_gap(shorts);
    EXPECT_LE(shorts.size(), 16u);  // a 15th of the kept time and more each
    EXPECT_EQ(shorts.back(), 59);
    return true;
  });
}

TEST_F(FlightTest, AProfilerWithinARingKeepsAllOfItsWindow) {
  with_longer_and_longer_rings(50 * kMs, [&](std::int64_t kept_ns) {
    fs::remove(directory_ / "ring.lspool");
    auto recorder = open({.ready_chunks = 16, .last_ns = kept_ns});
    EXPECT_TRUE(recorder->start());
    const std::uint32_t name = id_of("work");
    std::int64_t number = 0, last_began_ns = 0;
    const auto work = [&] {
      for (int burst = 0; burst < 100; ++burst) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(kept_ns / 50));
        last_began_ns = now_ns();
        for (int i = 0; i < 500; ++i) record::end_range(begin(name, number++));
      }
    };
    work();
    Profiler inner;
    EXPECT_TRUE(inner.start());
    const std::int64_t first = number;
    work();
    inner.stop();
    const std::int64_t last = number - 1;
    work();
    recorder->stop();
    const std::int64_t stopped = now_ns();
    if (recorder->stats().dropped_records != 0 || stopped - last_began_ns > kept_ns - kMs)
      return false;
    auto trace = inner.trace();  // of a copy: the ring is still there
    EXPECT_TRUE(trace) << trace.error().message;
    if (!trace) return true;
    auto found = numbers(**trace, "work");
    EXPECT_EQ(found.size(), 50'000u);
    if (found.empty()) return true;
    EXPECT_EQ(found.front(), first);
    EXPECT_EQ(found.back(), last);
    recorder->close();
    format::ReadSpoolOptions ring;
    ring.session = recorder->session();
    found = numbers(read(directory_ / "ring.lspool", ring), "work");
    EXPECT_FALSE(found.empty());
    if (found.empty()) return true;
    EXPECT_LT(found.size(), 50'000u);
    EXPECT_EQ(found.back(), number - 1);
    return true;
  });
}

// ---- Dumps ----

TEST_F(FlightTest, ADumpWhileThreadsWriteIsWhole) {
  constexpr std::int64_t kLast = 200 * kMs;
  auto recorder = open({.ready_chunks = 128, .last_ns = kLast});
  recorder->prepare();
  ASSERT_TRUE(recorder->start());
  std::atomic<bool> stop{false}, rest{false};
  std::atomic<std::int64_t> done[4], done_ns[4] = {};
  for (auto& one : done) one = -1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::uint32_t name = id_of("thread" + std::to_string(t));
      for (std::int64_t i = 0; !stop; ++i) {
        const auto token = begin(name, i);
        begin(id_of("text " + std::to_string(t) + " " + std::to_string(i % 5000)), i);
        const std::int64_t before_end = now_ns();
        record::end_range(token);
        done_ns[t].store(before_end, std::memory_order_relaxed);
        done[t].store(i, std::memory_order_release);
        if (i % 300 == 0) std::this_thread::sleep_for(milliseconds(1));
        while (rest && !stop) std::this_thread::sleep_for(milliseconds(1));
      }
    });
  for (int dump = 0; dump < (kSanitizers ? 2 : 6); ++dump) {
    rest = false;
    std::this_thread::sleep_for(milliseconds(300));  // longer than what is kept
    const std::string path = (directory_ / (std::to_string(dump) + ".copy")).string();
    std::int64_t before[4], before_ns[4], after[4];
    for (int t = 0; t < 4; ++t) {
      before[t] = done[t].load(std::memory_order_acquire);
      before_ns[t] = done_ns[t].load(std::memory_order_relaxed);
    }
    const auto dumped = recorder->dump(path);
    ASSERT_TRUE(dumped) << dumped.error().message;
    const std::int64_t dumped_ns = now_ns();
    for (int t = 0; t < 4; ++t) after[t] = done[t].load(std::memory_order_acquire);
    rest = true;  // reading needs the processors more
    const Trace trace = read(path);
    expect_undamaged(trace);
    EXPECT_EQ(issues(trace, ImportIssue::kOpenChunk), 0u);
    for (int t = 0; t < 4; ++t) {
      const auto found = numbers(trace, "thread" + std::to_string(t));
      if (recorder->stats().dropped_records != 0) continue;
      if (found.empty()) {  // a machine that did not let this thread run for the whole time kept
        EXPECT_LT(before_ns[t], dumped_ns - kLast + kMs);
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
    auto recorder = open({.last_ns = 600'000 * kMs, .dump_signal = SIGUSR2, .quiet_dumps = true});
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
        std::vector<std::string>{"SIGUSR2 makes no dumps: the program has its own handler for it"})
      return 3;
    struct sigaction known {};
    sigaction(SIGUSR2, nullptr, &known);
    return known.sa_handler == own_handler ? 0 : 4;
  }));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Step n took from a moment within marks[n] to one within marks[n + 1]. The longest that a step
// after the first, which includes the start, can have taken.
using Marks = std::vector<std::pair<std::int64_t, std::int64_t>>;
std::int64_t longest_step_ns(const Marks& marks) {
  std::int64_t longest = 0;
  for (std::size_t n = 1; n + 1 < marks.size(); ++n)
    longest = std::max(longest, marks[n + 1].second - marks[n].first);
  return longest;
}
// Whether the step may have taken more than so many times the median of all before it, of which the
// lower one of the two in the middle is no more than that.
bool may_be_slow(const Marks& marks, std::size_t step, double factor) {
  std::vector<std::int64_t> at_least;
  for (std::size_t n = 0; n < step; ++n) at_least.push_back(marks[n + 1].first - marks[n].second);
  std::sort(at_least.begin(), at_least.end());
  const std::int64_t at_most = marks[step + 1].second - marks[step].first;
  return static_cast<double>(at_most) > factor * static_cast<double>(at_least[(step - 1) / 2]);
}

TEST_F(FlightTest, ASlowStepMakesADumpThatCoversIt) {
  Profiler profiler({.spool_path = (directory_ / "ring.lspool").string(),
                     .last_ns = 600'000 * kMs,
                     .quiet_dumps = true,
                     .slow_step = 3});
  Marks marks = {{now_ns(), 0}};
  ASSERT_TRUE(profiler.start());
  marks[0].second = now_ns();
  const auto run_step = [&](int step, std::int64_t ns) {
    record::end_range(begin(id_of("step"), step));
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    marks.emplace_back(now_ns(), 0);
    profiler.step();
    marks.back().second = now_ns();
  };
  run_step(0, 300 * kMs);  // before 8 steps are known nothing is slow
  for (int step = 1; step < 9; ++step) run_step(step, 10 * kMs);
  run_step(9, 20 * kMs);  // usually not slow
  run_step(10, 4 * longest_step_ns(marks));
  ASSERT_TRUE(wait_until([&] { return profiler.dumps().size() == 1; }));
  const std::string first = profiler.dumps().at(0);
  run_step(11, 4 * longest_step_ns(marks));  // much worse, so it takes the place of that dump
  ASSERT_TRUE(wait_until([&] { return profiler.dumps() != std::vector<std::string>{first}; }));
  profiler.stop();
  ASSERT_EQ(profiler.dumps().size(), 1u);
  EXPECT_FALSE(fs::exists(first));
  const Trace trace = read(profiler.dumps().at(0));
  const std::string why(trace.metadata_json("lanescope_dump").value_or(""));
  const std::size_t slow = 11;
  EXPECT_THAT(why, HasSubstr("worse than step "));
  EXPECT_TRUE(may_be_slow(marks, slow, 3)) << why;
  const auto steps = numbers(trace, "step");
  EXPECT_THAT(steps, ::testing::Contains(static_cast<std::int64_t>(slow)));
  EXPECT_THAT(why, HasSubstr("step " + std::to_string(slow) + " took "));
  EXPECT_THAT(why, HasSubstr("the median of the " + std::to_string(slow) + " steps before it"));
}

TEST_F(FlightTest, OptionsThatContradictAreErrors) {
  const auto message = [](ProfilerOptions options) {
    const auto started = Profiler(std::move(options)).start();
    return started ? "" : started.error().message;
  };
  EXPECT_THAT(message({.schedule = *schedule({.active = 1}), .last_ns = kMs}),
              HasSubstr("a schedule chooses its steps in advance"));
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
      auto recorder = open({.ready_chunks = 128, .last_ns = kLast});  // more than it fills
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
    ASSERT_NE(find(trace, "outer"), kNone<SliceId>);
    // Where chunks ran out, because we were late to kill it, the newest record may be an early one.
    if (issues(trace, ImportIssue::kDroppedRecords) != 0) continue;
    EXPECT_GE(found.back(), *done);
    expect_no_gap(found);
    EXPECT_GT(found.front(), 0);
    EXPECT_EQ(trace.start_ns(find(trace, "outer")), trace.window_start_ns());
    EXPECT_NEAR(static_cast<double>(trace.window_end_ns() - trace.window_start_ns()),
                static_cast<double>(kLast), 1e6);
  }
  munmap(done, 4096);
}

TEST_F(FlightTest, AForkedChildLeavesTheRingAlone) {
  auto recorder = open({.last_ns = 600'000 * kMs, .quiet_dumps = true});
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
    auto recorder = open(
        {.disk_reserve_bytes = 0, .ready_chunks = 4, .last_ns = 60'000 * kMs, .quiet_dumps = true});
    if (!recorder->start()) return 1;
    const std::uint32_t name = id_of("work");
    for (int i = 0; i < 300'000; ++i) {
      record::end_range(begin(name, i));
      if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    const std::int64_t last = record_until_kept(*recorder, name, 300'000);
    if (recorder->dump((directory_ / "copy").string())) return 2;  // no room for it
    if (fs::exists(directory_ / "copy") || fs::exists(directory_ / "copy.part")) return 3;
    recorder->stop();
    recorder->close();
    if (recorder->notes().size() != 1) return 4;
    const Trace trace = read();
    const auto found = numbers(trace, "work");
    if (found.empty() || found.back() != last) return 5;
    return found.size() > 10'000 ? 0 : 6;
  }));
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs the right to mount a tmpfs";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lanescope
