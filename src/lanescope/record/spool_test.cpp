// Chunks for threads that record faster than the background thread prepares.
#include "lanescope/record/spool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

namespace lanescope::record {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> hold{false};
std::atomic<int> held{0};

// The background thread stays in here as if it got no core.
bool wait_for_a_core() noexcept {
  if (!hold) return false;
  ++held;
  while (hold) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return false;
}

class SpoolTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kThreadIsOld = 1000;  // it has had so many chunks

  SpoolTest() {
    path_ = fs::temp_directory_path() / ("lanescope_spool_" + std::to_string(getpid()));
    fs::remove(path_);
  }
  ~SpoolTest() override {
    hold = false;
    fs::remove(path_);
  }
  void start(std::uint64_t max_bytes) {
    auto made = Spool::create({.path = path_.string(),
                               .max_bytes = max_bytes,
                               .ready_chunks = 2,
                               .disk_reserve_bytes = 0,
                               .on_check = wait_for_a_core},
                              &texts_);
    ASSERT_TRUE(made) << made.error().message;
    spool_ = std::move(*made);
    spool_->prepare();
    held = 0;
    hold = true;
    spool_->set_window_open(true);
    while (held == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // A thread fills chunks until it gets none; at most so many. Returns how many it got.
  std::uint32_t fill(std::uint32_t most) {
    for (std::uint32_t got = 0; got < most; ++got) {
      spool::ChunkHeader* chunk = spool_->take_for_thread(kThreadIsOld);
      if (!chunk) return got;
      SpoolFile::claim(chunk, spool::ChunkKind::kRecords, 0, ++sequence_);
      spool_->pool().add_full(chunk);
    }
    return most;
  }
  void finish() {
    hold = false;
    spool_->finish(false);
  }

  fs::path path_;
  InternTable texts_;
  std::unique_ptr<Spool> spool_;
  std::uint32_t sequence_ = 0;
};

TEST_F(SpoolTest, AThreadPreparesItsChunksWhileTheBackgroundThreadHasNoCore) {
  start(std::uint64_t{64} << 20);
  EXPECT_EQ(fill(300), 300u);  // 2 were prepared
  finish();
}

TEST_F(SpoolTest, ThreadsPrepareNoMoreThan64MebibytesByThemselves) {
  start(std::uint64_t{1} << 30);
  EXPECT_EQ(fill(5000), 512u + 2);
  EXPECT_EQ(fill(1), 0u);
  hold = false;  // the background thread closes what is full
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (fill(1) == 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(fill(3), 3u);
  finish();
}

TEST_F(SpoolTest, AFullFileRefusesAThreadsOwnChunk) {
  start(std::uint64_t{4} << 20);
  const std::uint32_t got = fill(5000);
  EXPECT_GT(got, 20u);
  EXPECT_LT(got, 32u);
  EXPECT_EQ(fill(1), 0u);
  EXPECT_FALSE(spool_->refusal().empty());
  finish();
}

// ---- how often the background thread looks

std::atomic<bool> is_measured{false};
std::mutex looks_mutex;
std::vector<std::chrono::steady_clock::time_point> looks;  // guarded by looks_mutex

bool note_look() noexcept {
  const std::lock_guard lock(looks_mutex);
  looks.push_back(std::chrono::steady_clock::now());
  return is_measured;
}

// How long it slept, in ms, the middle one of its last 11 pauses. A busy machine makes pauses longer.
double pause_after(std::size_t more) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::size_t until = 0;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(looks_mutex);
    if (until == 0) until = looks.size() + more;
    if (looks.size() < until) continue;
    std::vector<double> pauses;
    for (std::size_t at = looks.size() - 11; at < looks.size(); ++at)
      pauses.push_back(
          std::chrono::duration<double, std::milli>(looks[at] - looks[at - 1]).count());
    std::nth_element(pauses.begin(), pauses.begin() + 5, pauses.end());
    return pauses[5];
  }
  return -1;
}

TEST_F(SpoolTest, ACalmProgramIsLookedAtEvery8MillisecondsAndOneWithABudgetEachMillisecond) {
  auto made = Spool::create({.path = path_.string(),
                             .max_bytes = std::uint64_t{64} << 20,
                             .ready_chunks = 8,
                             .disk_reserve_bytes = 0,
                             .on_check = note_look},
                            &texts_);
  ASSERT_TRUE(made) << made.error().message;
  spool_ = std::move(*made);
  spool_->prepare();
  is_measured = false;
  spool_->set_window_open(true);
  EXPECT_GE(pause_after(20), 7.5);
  is_measured = true;
  double pause = 100;
  for (int tries = 0; tries < 200 && pause >= 7.5; ++tries) pause = pause_after(20);
  EXPECT_LT(pause, 7.5);
  finish();
}

}  // namespace
}  // namespace lanescope::record
