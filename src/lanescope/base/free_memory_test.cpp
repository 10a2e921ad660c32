#include "lanescope/base/free_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace lanescope {
namespace {

// A folder with files as /proc and /sys have them. It goes with the test.
class GroupMemoryTest : public ::testing::Test {
 protected:
  GroupMemoryTest()
      : root_(std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
    write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable:   900 kB\nSwapFree:   0 kB\n");
  }
  ~GroupMemoryTest() override { std::filesystem::remove_all(root_); }

  void write(std::string_view path, std::string_view text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void write_group(const std::string& folder, std::string_view limit, std::string_view used) const {
    write(folder + "/memory.max", limit);
    write(folder + "/memory.current", used);
  }
  std::optional<GroupMemory> found() const { return group_memory(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(GroupMemoryTest, WithoutALimitThereIsNone) {
  EXPECT_FALSE(found());
  write("proc/self/cgroup", "0::/job/7\n");
  EXPECT_FALSE(found());
  write_group("sys/fs/cgroup/job/7", "max\n", "100\n");
  EXPECT_FALSE(found());
}

TEST_F(GroupMemoryTest, AGroupAroundOursMayLeaveLess) {
  write("proc/self/cgroup", "0::/job/7\n");
  write_group("sys/fs/cgroup/job/7", "1000\n", "100\n");
  write_group("sys/fs/cgroup/job", "800\n", "600\n");
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->limit_bytes, 800u);
  EXPECT_EQ(found()->free_bytes, 200u);
  write_group("sys/fs/cgroup/job/7", "250\n", "100\n");
  EXPECT_EQ(found()->limit_bytes, 250u);
  EXPECT_EQ(found()->free_bytes, 150u);
}

TEST_F(GroupMemoryTest, InAContainerTheLimitLiesAtTheRoot) {
  write("proc/self/cgroup", "0::/\n");
  write_group("sys/fs/cgroup", "500\n", "100\n");
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->free_bytes, 400u);
}

// A job that has read large files: its limit is reached, and nearly all of it is pages of files.
TEST_F(GroupMemoryTest, PagesOfFilesAreFree) {
  write("proc/self/cgroup", "0::/job\n");
  write_group("sys/fs/cgroup/job", "1000\n", "1000\n");
  EXPECT_EQ(found()->free_bytes, 0u);
  write("sys/fs/cgroup/job/memory.stat",
        "anon 300\nfile 700\ninactive_file 500\nactive_file 150\n");
  EXPECT_EQ(found()->free_bytes, 650u);
}

TEST_F(GroupMemoryTest, ReadsVersionOne) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/job/7\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // no limit
  EXPECT_FALSE(found());
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "900\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "700\n");
  write("sys/fs/cgroup/memory/job/memory.stat",
        "inactive_file 1\nactive_file 1\ntotal_inactive_file 40\ntotal_active_file 60\n");
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->limit_bytes, 900u);
  EXPECT_EQ(found()->free_bytes, 300u);
  EXPECT_EQ(found()->unused_bytes, 200u);
}

TEST_F(GroupMemoryTest, SwapIsWhatMachineAndGroupAllow) {
  write("proc/meminfo", "SwapFree:   2 kB\n");
  write("proc/self/cgroup", "0::/job\n");
  write_group("sys/fs/cgroup/job", "1000\n", "0\n");
  EXPECT_EQ(found()->swap_bytes, 2048u);
  write("sys/fs/cgroup/job/memory.swap.max", "500\n");
  write("sys/fs/cgroup/job/memory.swap.current", "200\n");
  EXPECT_EQ(found()->swap_bytes, 300u);
  write("proc/self/cgroup", "4:memory:/job\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n");
  write("sys/fs/cgroup/memory/job/memory.memsw.limit_in_bytes", "1600\n");
  EXPECT_EQ(found()->swap_bytes, 600u);
}

}  // namespace
}  // namespace lanescope
