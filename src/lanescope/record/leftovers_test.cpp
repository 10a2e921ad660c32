#include "lanescope/record/leftovers.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "lanescope/codec/spool_layout.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record/recording_name.h"

namespace lanescope::record {
namespace {
namespace fs = std::filesystem;

pid_t ended_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

class LeftoversTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) /
              ("lanescope_leftovers_" + std::string(info->name()) + "_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A spool's header, two hours old unless said otherwise.
  fs::path add(const std::string& name, std::uint64_t pid, const std::string& host,
               bool is_finished = false, int minutes_old = 120) {
    spool::FileHeader header{};
    std::memcpy(header.magic, spool::kMagic, sizeof header.magic);
    header.layout_version = spool::kLayoutVersion;
    header.pid = pid;
    header.state = is_finished ? spool::FileState::kFinished : spool::FileState{};
    host.copy(header.host_name, sizeof header.host_name - 1);
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(&header), sizeof header);
    fs::last_write_time(folder_ / name,
                        fs::file_time_type::clock::now() - std::chrono::minutes(minutes_old));
    return folder_ / name;
  }
  std::string temporary(const std::string& host, std::uint64_t pid, const char* end = "") {
    return std::string(kTemporaryProgram) + "_20250101T000000Z_" + host + "_" +
           std::to_string(pid) + end + ".lspool";
  }
  fs::path folder_;
};

TEST_F(LeftoversTest, AHeaderSaysWhoseASpoolIs) {
  const auto owner = read_spool_owner(add("a.lspool", 4711, "node7.cluster", true));
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->pid, 4711u);
  EXPECT_EQ(owner->host, "node7");
  EXPECT_TRUE(owner->is_finished);
  EXPECT_FALSE(owner->is_written);
  EXPECT_FALSE(read_spool_owner(folder_));
  std::ofstream(folder_ / "short.lspool") << "lanescope";
  EXPECT_FALSE(read_spool_owner(folder_ / "short.lspool"));
  fs::create_symlink(folder_ / "a.lspool", folder_ / "link.lspool");
  EXPECT_FALSE(read_spool_owner(folder_ / "link.lspool"));
}

TEST_F(LeftoversTest, ASpoolThatIsRecordedIsWrittenAndOneThatIsClosedIsNot) {
  auto recorder = Recorder::open({.spool_path = folder_ / "a.lspool"});
  ASSERT_TRUE(recorder);
  ASSERT_TRUE(read_spool_owner(folder_ / "a.lspool"));
  EXPECT_TRUE(read_spool_owner(folder_ / "a.lspool")->is_written);
  EXPECT_EQ(read_spool_owner(folder_ / "a.lspool")->host, short_host_name());
  (*recorder)->close();
  EXPECT_FALSE(read_spool_owner(folder_ / "a.lspool")->is_written);
  EXPECT_TRUE(read_spool_owner(folder_ / "a.lspool")->is_finished);
}

TEST_F(LeftoversTest, AProcessThatBeganAfterTheFilesLastChangeDidNotWriteIt) {
  const std::int64_t now = time(nullptr);
  const auto mine = static_cast<std::uint64_t>(getpid());
  EXPECT_TRUE(may_be_writer(mine, now));
  EXPECT_FALSE(may_be_writer(mine, now - 30 * 24 * 3600));
  EXPECT_FALSE(may_be_writer(static_cast<std::uint64_t>(ended_process()), now));
  EXPECT_FALSE(may_be_writer(0, now));
}

TEST_F(LeftoversTest, OnlyOldTemporarySpoolsOfKilledProcessesOfThisMachineGo) {
  const auto gone = static_cast<std::uint64_t>(ended_process());
  const auto mine = static_cast<std::uint64_t>(getpid());
  const std::string here = short_host_name();
  const fs::path leftover = add(temporary(here, gone), gone, here);
  const fs::path counted = add(temporary(here, gone, "_2"), gone, here);
  const std::vector<fs::path> kept = {
      add(temporary(here, gone, "_3"), gone, here, true),               // finished: a line named it
      add(temporary(here, gone, "_4"), gone, here, false, 59),          // not an hour old
      add(temporary(here, mine), mine, here, false, 0),                 // its process lives
      add(temporary("other", gone), gone, "other"),                     // another machine's
      add("train_20250101T000000Z_" + here + "_1.lspool", gone, here),  // not temporary
      add("lanescope_temporary.lspool", gone, here),                    // not our name
  };
  std::ofstream(folder_ / temporary(here, gone, "_5")) << "not a spool";
  fs::create_symlink(kept.front(), folder_ / temporary(here, gone, "_6"));
  EXPECT_EQ(remove_old_temporary_spools(folder_), 2);
  EXPECT_FALSE(fs::exists(leftover));
  EXPECT_FALSE(fs::exists(counted));
  for (const fs::path& path : kept) EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_TRUE(fs::exists(folder_ / temporary(here, gone, "_5")));
  EXPECT_TRUE(fs::is_symlink(folder_ / temporary(here, gone, "_6")));
  EXPECT_EQ(remove_old_temporary_spools(folder_ / "missing"), 0);
}

TEST_F(LeftoversTest, TheFirstTemporaryRecordingCleansItsFolder) {
  const auto gone = static_cast<std::uint64_t>(ended_process());
  const fs::path leftover = add(temporary(short_host_name(), gone), gone, short_host_name());
  const pid_t child = fork();  // a process that has not looked yet
  if (child == 0) {
    const auto recorder = Recorder::open({.directory = folder_, .temporary = true});
    _exit(recorder && !fs::exists(leftover) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lanescope::record
