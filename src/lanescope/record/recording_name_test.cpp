#include "lanescope/record/recording_name.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace lanescope::record {
namespace {

constexpr char kStamp[] = "20261123T061902Z";

TEST(RecordingNameTest, SaysProgramTimeRankHostAndProcess) {
  EXPECT_EQ(
      recording_name("/jobs/my train.py", 12, kStamp),
      "my_train.py_20261123T061902Z_rank12_" + short_host_name() + "_" + std::to_string(getpid()));
  EXPECT_EQ(recording_name("", {}, kStamp),
            "program_20261123T061902Z_" + short_host_name() + "_" + std::to_string(getpid()));
}

TEST(RecordingNameTest, WithoutATimeOfTheRunTheTimeIsNow) {
  for (const char* wrong : {"", "yesterday", "20261123T061902", "../../20261123T0Z"}) {
    const std::string before = run_stamp();
    const auto name = parse_recording_name(recording_name("train", {}, wrong));
    ASSERT_TRUE(name) << wrong;
    EXPECT_LE(before, name->started);
    EXPECT_LE(name->started, run_stamp());
  }
}

TEST(RecordingNameTest, IsReadBackFromTheNamesOfAllFilesOfARecording) {
  const std::string base = recording_name("a_20250101T000000Z_b", 7, kStamp);
  for (const char* ending : {"", ".lspool", ".json.gz", "_2.json", "_dump1.lspool", "_3_dump12.txt",
                             ".json.partial-99", ".lspool.read12"}) {
    const auto name = parse_recording_name(base + ending);
    ASSERT_TRUE(name) << base + ending;
    EXPECT_EQ(name->program, "a_20250101T000000Z_b");
    EXPECT_EQ(name->started, kStamp);
    EXPECT_EQ(name->rank, 7u);
    EXPECT_EQ(name->host, short_host_name());
    EXPECT_EQ(name->pid, static_cast<std::uint64_t>(getpid()));
  }
}

TEST(RecordingNameTest, OtherNamesAreNotTakenForRecordings) {
  for (const char* other : {"", "trace.json", "train_4711.lspool", "_20261123T061902Z_h_1",
                            "train_20261123T061902Z", "train_20261123T061902Z_node7",
                            "train_20261123T061902Z__4711", "train_20261123T061902Z_node7_",
                            "train_20261123T061902Z_node7_12x.json", "train_20261123061902Z_n_1"})
    EXPECT_FALSE(parse_recording_name(other)) << other;
}

// As `ls` shows a folder: run after run, the ranks of a run together.
TEST(RecordingNameTest, SortsByRunThenByRank) {
  EXPECT_LT("train_20261123T061902Z_rank1_b_9", std::string("train_20261124T000000Z_rank0_a_1"));
  EXPECT_LT(recording_name("train", 0, kStamp), recording_name("train", 1, kStamp));
}

}  // namespace
}  // namespace lanescope::record
