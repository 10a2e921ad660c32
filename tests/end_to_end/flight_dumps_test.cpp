// Recordings that keep their last seconds: copied while threads write, and readable whatever happens to
// the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "flight_helpers.h"

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
