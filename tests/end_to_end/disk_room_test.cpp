// A disk that is nearly full: the recording takes no more than is left above its reserve, and the
// program can write its own files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler.h"
#include "recording_folder.h"

namespace lanescope {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
constexpr std::uint64_t kMiB = 1 << 20;

class DiskRoomTest : public RecordingFolderTest {
 protected:
  // Runs `body` in a child with a separate disk at directory_.
  void on_disk(const char* type, const char* options, const std::function<void()>& body) const {
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      if (unshare(CLONE_NEWNS) != 0 ||
          mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount(type, directory_.c_str(), type, 0, options) != 0)
        _exit(77);
      body();
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs the right to mount a " << type;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  std::unique_ptr<record::Recorder> start(record::RecorderOptions options = {}) const {
    options.spool_path = (directory_ / "x.lspool").string();
    auto recorder = record::Recorder::open(options);
    EXPECT_TRUE(recorder) << recorder.error().message;
    EXPECT_TRUE((*recorder)->start());
    return std::move(recorder).value();
  }
  std::uint64_t free_bytes() const {
    struct statvfs disk {};
    EXPECT_EQ(statvfs(directory_.c_str(), &disk), 0);
    return std::uint64_t{disk.f_bavail} * disk.f_frsize;
  }
  // Like torch.save: how much of another file the program can write.
  std::uint64_t write_own(const std::string& name, std::uint64_t most) const {
    const int fd = ::open((directory_ / name).c_str(), O_WRONLY | O_CREAT, 0644);
    const std::vector<char> block(1 << 16, 'x');
    std::uint64_t written = 0;
    while (written < most) {
      const ssize_t count = write(fd, block.data(), block.size());
      if (count <= 0) break;
      written += static_cast<std::uint64_t>(count);
    }
    close(fd);
    return written;
  }
  // Every range is in the file or counted.
  void expect_whole(const record::Recorder& recorder, std::uint64_t ranges) const {
    const auto trace = format::read_spool(recorder.spool_path());
    ASSERT_TRUE(trace) << trace.error().message;
    std::uint64_t found = 0;
    for (std::uint32_t i = 0; i < trace->slices().size(); ++i)
      found += trace->name(SliceId{i}) == "x";
    EXPECT_GT(found, 0u);
    EXPECT_EQ(found + recorder.stats().dropped_records, ranges);
    EXPECT_EQ(trace->import_stats()[ImportIssue::kDroppedRecords].count,
              recorder.stats().dropped_records);
  }
  static void record_until_dropped(record::Recorder& recorder, std::uint64_t* ranges) {
    // Slowly enough for the background thread, until nothing finds room for a while.
    constexpr std::uint64_t kBurst = 2'000;
    for (int in_vain = 0; in_vain < 50;) {
      const std::uint64_t before = recorder.stats().dropped_records;
      for (std::uint64_t i = 0; i < kBurst; ++i, ++*ranges) LANESCOPE_RECORD_FUNCTION("x");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const bool all_dropped = recorder.stats().dropped_records - before == kBurst;
      in_vain = all_dropped ? in_vain + 1 : 0;
    }
  }
};

TEST_F(DiskRoomTest, OnASmallDiskHalfOfWhatIsFreeStaysFree) {
  on_disk("tmpfs", "size=60m", [&] {
    const std::uint64_t before = free_bytes();
    auto recorder = start();
    std::uint64_t ranges = 0;
    record_until_dropped(*recorder, &ranges);
    EXPECT_GE(free_bytes(), before / 2);
    EXPECT_LT(free_bytes(), before / 2 + 16 * kMiB) << "the other half was used";
    EXPECT_EQ(write_own("checkpoint", 25 * kMiB), 25 * kMiB);
    recorder->stop();
    recorder->close();
    EXPECT_THAT(recorder->notes(), Contains(HasSubstr("the reserve (--disk-reserve")));
    expect_whole(*recorder, ranges);
  });
}

TEST_F(DiskRoomTest, TheReserveIsTheUsersToChoose) {
  on_disk("tmpfs", "size=60m", [&] {
    auto recorder = start({.disk_reserve_bytes = 50 * kMiB});
    std::uint64_t ranges = 0;
    record_until_dropped(*recorder, &ranges);
    EXPECT_GE(free_bytes(), 50 * kMiB);
    recorder->stop();
    recorder->close();
    expect_whole(*recorder, ranges);
  });
}

TEST_F(DiskRoomTest, WithoutAReserveAFullDiskIsDropsAndNoSignal) {
  on_disk("tmpfs", "size=20m", [&] {
    auto recorder = start({.disk_reserve_bytes = 0});
    std::uint64_t ranges = 0;
    record_until_dropped(*recorder, &ranges);
    std::vector<std::thread> threads;  // their first chunks find nothing, either
    for (int t = 0; t < 300; ++t)
      threads.emplace_back([] {
        for (int i = 0; i < 100; ++i) LANESCOPE_RECORD_FUNCTION("x");
      });
    for (std::thread& thread : threads) thread.join();
    recorder->stop();
    recorder->close();
    EXPECT_THAT(recorder->notes(), Contains(HasSubstr("could not grow: No space left")));
    expect_whole(*recorder, ranges + 30'000);
  });
}

TEST_F(DiskRoomTest, PreparedChunksGoBackToADiskThatTheProgramFills) {
  on_disk("tmpfs", "size=100m", [&] {
    auto recorder = start({.disk_reserve_bytes = 10 * kMiB, .ready_chunks = 240});  // 30 MiB
    { LANESCOPE_RECORD_FUNCTION("x"); }
    EXPECT_EQ(recorder->stats().dropped_records, 0u);
    const std::uint64_t prepared = free_bytes();
    write_own("checkpoint", prepared - 5 * kMiB);
    std::uint64_t ranges = 1, most_free = 0;
    for (int round = 0; round < 2'000 && most_free < 20 * kMiB; ++round) {
      // Takes prepared chunks, so that more are wanted.
      for (int i = 0; i < 1'000; ++i, ++ranges) LANESCOPE_RECORD_FUNCTION("x");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      most_free = std::max(most_free, free_bytes());
    }
    EXPECT_GE(most_free, 20 * kMiB);
    // When the program has made room, the recording takes what it needs again.
    ASSERT_EQ(unlink((directory_ / "checkpoint").c_str()), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const std::uint64_t dropped = recorder->stats().dropped_records;
    for (int i = 0; i < 30'000; ++i, ++ranges) {
      LANESCOPE_RECORD_FUNCTION("x");
      if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    EXPECT_LT(recorder->stats().dropped_records - dropped, 30'000u) << "some were kept";
    recorder->stop();
    recorder->close();
    expect_whole(*recorder, ranges);
  });
}

TEST_F(DiskRoomTest, ARingAtTheReserveGoesOnWithItsOldestChunks) {
  on_disk("tmpfs", "size=40m", [&] {
    auto recorder = start({.disk_reserve_bytes = 30 * kMiB,
                           .ready_chunks = 8,
                           .last_ns = 600'000'000'000,
                           .quiet_dumps = true});
    for (int i = 0; i < 600'000; ++i) {  // 29 MB
      LANESCOPE_RECORD_FUNCTION("x");
      if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    { LANESCOPE_RECORD_FUNCTION("last"); }
    EXPECT_GE(free_bytes(), 29 * kMiB);
    recorder->stop();
    recorder->close();
    EXPECT_THAT(recorder->notes(), Contains(HasSubstr("more did not fit: its disk")));
    const auto trace = format::read_spool(recorder->spool_path());
    ASSERT_TRUE(trace);
    std::uint64_t found = 0;
    for (std::uint32_t i = 0; i < trace->slices().size(); ++i)
      found += trace->name(SliceId{i}) == "x";
    EXPECT_GT(found, 20'000u);
  });
}

// There posix_fallocate writes zeros.
TEST_F(DiskRoomTest, AFileSystemThatCannotReserveWorks) {
  on_disk("ramfs", "", [&] {
    auto recorder = start({.max_bytes = 8 * kMiB});
    std::uint64_t ranges = 0;
    record_until_dropped(*recorder, &ranges);
    recorder->stop();
    recorder->close();
    EXPECT_THAT(recorder->notes(), Contains(HasSubstr("size limit of 8388608 bytes")));
    expect_whole(*recorder, ranges);
  });
}

}  // namespace
}  // namespace lanescope
