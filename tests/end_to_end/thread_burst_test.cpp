// Programs with many threads, each of which records little: no record is lost, and the
// file stays small.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler.h"
#include "lanescope/testing/sanitizers.h"
#include "recording_folder.h"

namespace lanescope {
namespace {

namespace fs = std::filesystem;

class ThreadBurstTest : public RecordingFolderTest {
 protected:
  void SetUp() override {
    RecordingFolderTest::SetUp();
    // Two cores, whatever the machine has.
    cpu_set_t two;
    CPU_ZERO(&two);
    ASSERT_EQ(sched_getaffinity(0, sizeof all_, &all_), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++cpu)
      if (CPU_ISSET(cpu, &all_)) CPU_SET(cpu, &two);
    ASSERT_EQ(sched_setaffinity(0, sizeof two, &two), 0);
  }
  void TearDown() override {
    sched_setaffinity(0, sizeof all_, &all_);
    RecordingFolderTest::TearDown();
  }
  cpu_set_t all_;
};

// Threads that wait for each other and then record at the same moment.
void record_in_burst(int threads, int ranges) {
  std::atomic<int> waiting{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&] {
      ++waiting;
      while (!go) std::this_thread::yield();
      for (int i = 0; i < ranges; ++i) LANESCOPE_RECORD_FUNCTION("work");
    });
  while (waiting != threads) std::this_thread::yield();
  go = true;
  for (std::thread& worker : workers) worker.join();
}

std::size_t count_of(const Trace& trace, std::string_view name, std::size_t* tracks) {
  std::size_t count = 0;
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    if (trace.name(SliceId{i}) != name) continue;
    ++count;
    seen.insert(raw(trace.slices().track[i]));
  }
  *tracks = seen.size();
  return count;
}

TEST_F(ThreadBurstTest, FiveHundredThreadsAtOnceLoseNothing) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  record_in_burst(500, 1);
  recorder->stop();
  recorder->close();
  EXPECT_EQ(recorder->stats().dropped_records, 0u);
  std::size_t tracks = 0;
  EXPECT_EQ(count_of(read(), "work", &tracks), 500u);
  EXPECT_EQ(tracks, 500u);
}

TEST_F(ThreadBurstTest, ThreadsThatGoOnLoseNothingWhileTheirChunksAreMade) {
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  record_in_burst(200, 700);
  recorder->stop();
  recorder->close();
  EXPECT_EQ(recorder->stats().dropped_records, 0u);
  const Trace trace = read();
  std::size_t tracks = 0;
  EXPECT_EQ(count_of(trace, "work", &tracks), 200u * 700u);
  EXPECT_EQ(tracks, 200u);
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

TEST_F(ThreadBurstTest, FortyThousandShortThreadsTakeLittleRoomAndLoseNothing) {
  const int rounds = testing::rounds(2500), at_once = 16, ranges = 3;
  auto recorder = open();
  ASSERT_TRUE(recorder->start());
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> workers;
    for (int t = 0; t < at_once; ++t)
      workers.emplace_back([] {
        for (int i = 0; i < 3; ++i) LANESCOPE_RECORD_FUNCTION("work");
      });
    for (std::thread& worker : workers) worker.join();
  }
  recorder->stop();
  recorder->close();
  EXPECT_EQ(recorder->stats().dropped_records, 0u);
  EXPECT_EQ(recorder->stats().threads, static_cast<std::uint32_t>(rounds * at_once));
  EXPECT_LE(recorder->stats().file_bytes, 100'000'000u);
  std::size_t tracks = 0;
  EXPECT_EQ(count_of(read(), "work", &tracks), static_cast<std::size_t>(rounds * at_once * ranges));
}

}  // namespace
}  // namespace lanescope
