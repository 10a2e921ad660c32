#include "lanescope/base/spill_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/statfs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "lanescope/base/free_memory.h"
#include "lanescope/testing/sanitizers.h"

namespace lanescope {
namespace {

constexpr std::size_t kMiB = 1u << 20;

// A folder on a disk, as the tests of this file need one.
std::string folder() { return "/var/tmp"; }

// Mappings of files within these addresses.
std::size_t files_mapped_in(const char* block, std::size_t bytes) {
  std::ifstream maps("/proc/self/maps");
  std::size_t files = 0;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0;
    unsigned long long inode = 0;
    if (std::sscanf(line.c_str(), "%lx-%*x %*s %*x %*s %llu", &from, &inode) != 2) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    if (from >= begin && from < begin + bytes && inode != 0) ++files;
  }
  return files;
}

TEST(SpillMemoryTest, WithinTheBudgetSmallBlocksComeFromMalloc) {
  SpillMemory memory(100 * kMiB, {folder()});
  EXPECT_EQ(memory.allocate(SpillMemory::kLeastSpilled - 1), nullptr);
  EXPECT_EQ(memory.allocate(SpillMemory::kLargeBlock - 1), nullptr);
  EXPECT_EQ(memory.in_memory_bytes(), 0u);
}

// Budget 100 MiB: 64 fit, 40 more do not, and when the 64 are gone they do.
TEST(SpillMemoryTest, BlocksBeyondTheBudgetLieOnDisk) {
  SpillMemory memory(100 * kMiB, {folder()});
  char* const first = static_cast<char*>(memory.allocate(64 * kMiB));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(memory.in_memory_bytes(), 64 * kMiB);
  char* const second = static_cast<char*>(memory.allocate(40 * kMiB));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(memory.in_memory_bytes(), 64 * kMiB);
  EXPECT_EQ(memory.on_disk_bytes(), 40 * kMiB);
  EXPECT_EQ(second[17], 0);
  std::memset(second, 'x', 40 * kMiB);
  EXPECT_EQ(second[40 * kMiB - 1], 'x');
  EXPECT_TRUE(memory.release(first));
  char* const third = static_cast<char*>(memory.allocate(40 * kMiB));
  EXPECT_EQ(memory.in_memory_bytes(), 40 * kMiB);
  EXPECT_TRUE(memory.release(second));
  EXPECT_TRUE(memory.release(third));
  EXPECT_EQ(memory.in_memory_bytes() + memory.on_disk_bytes(), 0u);
}

// Budget 10 MiB, of which malloc's blocks have 8: 3 more do not fit, and 2 do.
TEST(SpillMemoryTest, BlocksOfMallocAreAPartOfTheBudget) {
  SpillMemory memory(10 * kMiB, {folder()});
  memory.count_malloc(8 * kMiB);
  EXPECT_EQ(memory.allocate(2 * kMiB), nullptr);
  void* const third = memory.allocate(3 * kMiB);
  EXPECT_EQ(memory.on_disk_bytes(), 3 * kMiB);
  EXPECT_TRUE(memory.release(third));
  memory.forget_malloc(8 * kMiB);
  EXPECT_EQ(memory.allocate(3 * kMiB), nullptr);
}

// 1 MiB and 5 bytes in files of 64 KiB: 17 of them, in a row. A block of 64 MiB would need 1,024; it has at most kMostPieces.
TEST(SpillMemoryTest, ABlockMayLieInSeveralFiles) {
  SpillMemory memory(0, {folder()}, 64u << 10);
  for (const std::size_t bytes : {kMiB + 5, 64 * kMiB}) {
    char* const block = static_cast<char*>(memory.allocate(bytes));
    ASSERT_NE(block, nullptr);
    const std::size_t files = files_mapped_in(block, bytes);
    if (bytes == kMiB + 5)
      EXPECT_EQ(files, 17u);
    else
      EXPECT_TRUE(files > 200 && files <= SpillMemory::kMostPieces) << files;
    for (std::size_t at = 0; at < bytes; at += 4093) {
      EXPECT_EQ(block[at], 0);
      block[at] = static_cast<char>(at % 127);
    }
    for (std::size_t at = 0; at < bytes; at += 4093)
      ASSERT_EQ(block[at], static_cast<char>(at % 127)) << at;
    block[bytes - 1] = 'x';
    EXPECT_TRUE(memory.release(block));
    EXPECT_EQ(memory.on_disk_bytes(), 0u);
  }
}

TEST(SpillMemoryTest, BlocksOfOthersAreLeftAlone) {
  SpillMemory memory(0, {folder()});
  void* const own = memory.allocate(kMiB);
  void* const other = std::aligned_alloc(4096, 4096);
  EXPECT_FALSE(memory.release(other));
  EXPECT_FALSE(memory.release(&memory));
  std::free(other);
  EXPECT_TRUE(memory.release(own));
  EXPECT_FALSE(memory.release(own));
}

TEST(SpillMemoryTest, NoFileStaysInTheFolder) {
  const auto place = std::filesystem::path(folder()) / "lanescope_spill_test";
  std::filesystem::create_directories(place);
  SpillMemory memory(0, {place.string()});
  void* const block = memory.allocate(2 * kMiB);
  EXPECT_TRUE(std::filesystem::is_empty(place));
  EXPECT_TRUE(memory.release(block));
  std::filesystem::remove_all(place);
}

TEST(SpillMemoryTest, ADiskWithoutRoomIsSaid) {
  struct statfs info {};
  ASSERT_EQ(::statfs(folder().c_str(), &info), 0);
  const std::size_t too_much =
      (static_cast<std::size_t>(info.f_bavail) * static_cast<std::size_t>(info.f_bsize) +
       (std::size_t{1} << 40));
  SpillMemory memory(0, {folder()});
  try {
    memory.allocate(too_much);
    FAIL();
  } catch (const SpillFailed& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("memory is short; expected"), std::string::npos) << text;
    EXPECT_NE(text.find(" in /var/tmp"), std::string::npos) << text;
    EXPECT_NE(text.find("set TMPDIR"), std::string::npos) << text;
  }
  EXPECT_EQ(memory.on_disk_bytes(), 0u);
}

TEST(SpillMemoryTest, WithoutAFolderItSaysSo) {
  SpillMemory memory(0, {"/nowhere/at/all", "/dev/shm"});
  EXPECT_THROW(memory.allocate(kMiB), SpillFailed);
}

TEST(FreeMemoryTest, IsSomethingAndAtMostWhatThisProcessMayTake) {
  const auto before = free_memory_bytes();
  ASSERT_TRUE(before);
  EXPECT_GT(*before, kMiB);
  if (testing::kSanitizers)
    GTEST_SKIP() << "a sanitizer itself needs more than the limit of this test";
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &old), 0);
  rlimit small = old;
  small.rlim_cur = 512 * kMiB;
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &small), 0);
  EXPECT_LE(*free_memory_bytes(), 512 * kMiB);
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &old), 0);
}

}  // namespace
}  // namespace lanescope
