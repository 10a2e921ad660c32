#include "lanescope/base/memory_watch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "lanescope/base/spill_memory.h"

namespace lanescope {
namespace {

constexpr std::uint64_t kWatchedMiB = 1u << 20;

// The status of a process that takes memory when the test says so.
class MemoryWatchTest : public ::testing::Test {
 protected:
  MemoryWatchTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
    take(3, 0);
  }
  ~MemoryWatchTest() override { std::filesystem::remove_all(folder_); }

  // In the same file, as /proc does.
  void take(std::uint64_t memory_mib, std::uint64_t swap_mib) const {
    std::ofstream(folder_ / "status")
        << "Name:\tlanescope\nVmRSS:\t  999999 kB\nRssAnon:\t  " << memory_mib * 1024
        << " kB\nRssFile:\t  888888 kB\nVmPTE:\t  1024 kB\nVmSwap:\t  " << swap_mib * 1024
        << " kB\n";
  }
  static std::string refusal(const auto& asked) {
    try {
      asked();
    } catch (const SpillFailed& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_;
};

TEST_F(MemoryWatchTest, RefusesWhatWouldLeaveNoRoomForFiles) {
  const GroupMemory group = {.limit_bytes = 64 * kWatchedMiB, .free_bytes = 60 * kWatchedMiB};
  const MemoryWatch watch(group, folder_.string());
  watch.expect_least();
  watch.expect_room();
  take(3 + 60 - 6, 0);  // 6 MiB stay for files
  watch.expect_room();
  take(3 + 60 - 5, 0);
  EXPECT_EQ(refusal([&] { watch.expect_room(); }),
            "the control group (a container or a job) allows 64 MiB of memory, of which 60 MiB "
            "were free at the "
            "start; expected more; raise its limit, or take a smaller trace");
}

// A small trace needs 3 MiB, also in a group of 12.
TEST_F(MemoryWatchTest, HalfOfALittleIsForBlocks) {
  const GroupMemory group = {.limit_bytes = 12 * kWatchedMiB, .free_bytes = 10 * kWatchedMiB};
  const MemoryWatch watch(group, folder_.string());
  take(3 + 5, 0);
  watch.expect_room();
  take(3 + 6, 0);
  EXPECT_THROW(watch.expect_room(), SpillFailed);
}

TEST_F(MemoryWatchTest, SwapIsRoomToo) {
  const GroupMemory group = {.limit_bytes = 64 * kWatchedMiB,
                             .free_bytes = 20 * kWatchedMiB,
                             .swap_bytes = 100 * kWatchedMiB};
  const MemoryWatch watch(group, folder_.string());
  watch.expect_least();
  take(20, 80);  // 97 MiB more than at the start, 6 for files: 103 of 120
  watch.expect_room();
  take(20, 98);
  EXPECT_THROW(watch.expect_room(), SpillFailed);
}

TEST_F(MemoryWatchTest, SaysTheLeast) {
  const GroupMemory group = {.limit_bytes = 20 * kWatchedMiB, .free_bytes = 17 * kWatchedMiB};
  const MemoryWatch watch(group, folder_.string());
  EXPECT_EQ(refusal([&] { watch.expect_least(); }),
            "the control group (a container or a job) allows 20 MiB of memory; expected at least "
            "28 MiB that are free; raise its limit");
}

TEST_F(MemoryWatchTest, RefusesAtOnceWhatWouldReadTheSamePagesAgain) {
  ASSERT_EQ(::unsetenv("LANESCOPE_MEMORY"), 0);
  const GroupMemory group = {.limit_bytes = 32 * kWatchedMiB,
                             .free_bytes = 20 * kWatchedMiB,
                             .swap_bytes = 10 * kWatchedMiB};
  const MemoryWatch watch(group, folder_.string());
  watch.expect_in_use(30 * kWatchedMiB);
  EXPECT_EQ(refusal([&] { watch.expect_in_use(30 * kWatchedMiB + 1); }),
            "the control group (a container or a job) allows 32 MiB of memory, of which 30 MiB are "
            "free; expected about 31 MiB for this trace; raise its limit, or make an index "
            "elsewhere (`lanescope index`) and take a part (`--window`); LANESCOPE_MEMORY=16MiB "
            "tries it as it is, from the disk");
  ASSERT_EQ(::setenv("LANESCOPE_MEMORY", "16MiB", 1), 0);
  watch.expect_in_use(1000 * kWatchedMiB);
  ASSERT_EQ(::unsetenv("LANESCOPE_MEMORY"), 0);
}

TEST_F(MemoryWatchTest, MemoryIsLittleBelow48MiB) {
  const auto is_little = [&](std::uint64_t free, std::uint64_t swap) {
    const GroupMemory group = {.limit_bytes = 1000 * kWatchedMiB,
                               .free_bytes = free * kWatchedMiB,
                               .swap_bytes = swap * kWatchedMiB};
    return MemoryWatch(group, folder_.string()).is_little();
  };
  EXPECT_TRUE(is_little(30, 0));
  EXPECT_TRUE(is_little(30, 17));
  EXPECT_FALSE(is_little(30, 18));
  EXPECT_FALSE(is_little(48, 0));
}

TEST_F(MemoryWatchTest, WithoutAStatusNothingIsRefused) {
  const GroupMemory group = {.limit_bytes = 64 * kWatchedMiB, .free_bytes = 60 * kWatchedMiB};
  MemoryWatch(group, "/nowhere").expect_room();
}

}  // namespace
}  // namespace lanescope
