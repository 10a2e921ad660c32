// Recordings that keep their last seconds: bounded for ever, and whole within these seconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "flight_helpers.h"

namespace lanescope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using std::chrono::milliseconds;

using testing::kSanitizers;

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
  EXPECT_THAT(recorder->notes(), ElementsAre(HasSubstr("of the 60 s requested; more did not fit")));
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

}  // namespace
}  // namespace lanescope
