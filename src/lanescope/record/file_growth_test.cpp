#include "lanescope/record/file_growth.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "lanescope/codec/spool_layout.h"
#include "lanescope/record/bus_guard.h"
#include "lanescope/record/spool_file.h"

namespace lanescope::record {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kGrownBytes = spool::kChunkBytes;
constinit std::atomic<std::uint32_t> growth_recording{1};
constinit BusGuard growth_guard{&growth_recording};
void on_growth_bus(int signal, siginfo_t* info, void* context) {
  growth_guard.handle(signal, info, context);
}

class FileGrowthTest : public ::testing::Test {
 protected:
  FileGrowthTest() {
    std::string name = (fs::temp_directory_path() / "lanescope_file_growth_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    fd_ = open(path("a").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  }
  ~FileGrowthTest() override {
    close(fd_);
    fs::remove_all(folder_);
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::uint64_t size() const { return fs::file_size(path("a")); }

  fs::path folder_;
  int fd_ = -1;
};

TEST_F(FileGrowthTest, ReservingLeavesTheLength) {
  ASSERT_EQ(reserve_room(fd_, 0, kGrownBytes), 0);
  EXPECT_EQ(size(), 0u);
}

TEST_F(FileGrowthTest, AppendsZeroesAtTheEnd) {
  ASSERT_EQ(pwrite(fd_, "before", 6, 0), 6);
  ASSERT_EQ(append_zeroes(fd_, 6, kGrownBytes), 0);
  EXPECT_EQ(size(), 6 + kGrownBytes);
  std::string read(6 + kGrownBytes, 'x');
  ASSERT_EQ(pread(fd_, read.data(), read.size(), 0), static_cast<ssize_t>(read.size()));
  EXPECT_EQ(read, "before" + std::string(kGrownBytes, 0));
}

TEST_F(FileGrowthTest, AFileThatEndsElsewhereKeepsItsLength) {
  ASSERT_EQ(append_zeroes(fd_, 0, kGrownBytes), 0);
  ASSERT_EQ(ftruncate(fd_, 1000), 0);
  EXPECT_EQ(append_zeroes(fd_, kGrownBytes, kGrownBytes), ESTALE);
  EXPECT_EQ(size(), 1000u);
  EXPECT_EQ(append_zeroes(fd_, 10, kGrownBytes), ESTALE) << "longer than known";
  EXPECT_EQ(size(), 1000u);
}

TEST_F(FileGrowthTest, StaysBelowTheLimitOfTheProcess) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit low{kGrownBytes, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  EXPECT_EQ(reserve_room(fd_, 0, kGrownBytes), 0);
  EXPECT_EQ(reserve_room(fd_, 1, kGrownBytes), EFBIG);
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

// Somebody cuts the file while it grows, at any moment: between the check of its length and the
// growth, too.
TEST_F(FileGrowthTest, ACutDuringTheGrowthIsNoticedAndNotCovered) {
  constexpr std::uint64_t kLeft = spool::kHeaderBytes + kGrownBytes;
  growth_guard.install(on_growth_bus);
  for (int round = 0; round < 100 && !HasFailure(); ++round) {
    const std::string spool = path("spool");
    auto made = SpoolFile::create(spool, 64u << 20, &growth_guard, 0);
    ASSERT_TRUE(made) << made.error().message;
    SpoolFile& file = **made;
    std::atomic<int> chunks{0};
    std::atomic<bool> cut{false};
    std::thread cutter([&] {
      while (chunks < 3) std::this_thread::yield();
      const auto moment = std::chrono::steady_clock::now() + std::chrono::nanoseconds(round * 100);
      while (std::chrono::steady_clock::now() < moment) {
      }
      EXPECT_EQ(truncate(spool.c_str(), static_cast<off_t>(kLeft)), 0);
      cut = true;
    });
    for (bool last = false; !last && chunks < 60;) {
      last = cut;
      if (file.make_chunk()) ++chunks;
    }
    cutter.join();
    file.check_for_cut();
    EXPECT_TRUE(file.is_cut()) << "round " << round;
    EXPECT_EQ(fs::file_size(spool), kLeft) << "round " << round;
    made->reset();
    fs::remove(spool);
  }
}

}  // namespace
}  // namespace lanescope::record
