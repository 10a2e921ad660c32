// Chunks for threads that record faster than the background thread prepares.
#include "lanescope/record/spool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

namespace lanescope::record {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> hold{false};
std::atomic<int> held{0};

// The background thread stays in here as if it got no core.
void wait_for_a_core() noexcept {
  if (!hold) return;
  ++held;
  while (hold) std::this_thread::sleep_for(std::chrono::milliseconds(1));
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

}  // namespace
}  // namespace lanescope::record
