#include "lanescope/profiler/newest_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace lanescope {
namespace {
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class NewestTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) /
              ("lanescope_newest_" + std::string(info->name()) + "_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Later ones are newer by a second.
  void add(const std::string& name) { add(name, R"({"traceEvents": []})"); }
  void add(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    fs::last_write_time(folder_ / name, start_ + std::chrono::seconds(++files_));
  }
  NewestTrace newest() {
    auto found = newest_trace_in(folder_.string());
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : NewestTrace{};
  }
  std::string in_folder(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
  const fs::file_time_type start_ = fs::file_time_type::clock::now() - std::chrono::hours(1);
  int files_ = 0;
};

TEST_F(NewestTraceTest, TheOnlyTraceOfAFolder) {
  add("notes.md");
  add("a.json.gz");
  add("a.txt");
  EXPECT_EQ(newest().path, in_folder("a.json.gz"));
  EXPECT_THAT(newest().line, HasSubstr("the only trace in '"));
}

TEST_F(NewestTraceTest, TheOneThatChangedLast) {
  add("z.json");
  add("a.json.zst");
  add("b.json.partial-17");
  add("c.lspool.read9");
  EXPECT_EQ(newest().path, in_folder("a.json.zst"));
  EXPECT_THAT(newest().line, HasSubstr("the newest of 2 traces in '"));
}

TEST_F(NewestTraceTest, AFinishedTraceWinsOverItsRecording) {
  add("old.json");
  add("run.json.gz");
  add("run.lspool");
  EXPECT_EQ(newest().path, in_folder("run.json.gz"));
  EXPECT_THAT(newest().line, HasSubstr("the newest of 2 traces"));
  add("killed.lspool");
  EXPECT_EQ(newest().path, in_folder("killed.lspool"));
}

TEST_F(NewestTraceTest, PassesOverNewerFilesThatAreNoTraces) {
  add("run.json");
  add("flame.speedscope.json",
      R"({"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []})");
  add("tables.sqlite", std::string("SQLite format 3\0", 16));
  add("config.json", R"({"lr": 0.1})");
  EXPECT_EQ(newest().path, in_folder("run.json"));
  EXPECT_THAT(newest().line,
              EndsWith("; passed over 3 newer files that are no traces: 'config.json', "
                       "'tables.sqlite', 'flame.speedscope.json'"));
  add("newer.json");
  EXPECT_THAT(newest().line, ::testing::Not(HasSubstr("passed over")));
}

// The message about the one that is there says what it is.
TEST_F(NewestTraceTest, TheOnlyFileIsTakenEvenIfItIsNoTrace) {
  add("config.json", R"({"lr": 0.1})");
  EXPECT_EQ(newest().path, in_folder("config.json"));
}

TEST_F(NewestTraceTest, TheLowestRankOfTheNewestRun) {
  add("train_20261122T000000Z_rank0_n_1.json");
  add("train_20261123T061902Z_rank2_n_4.json");
  add("train_20261123T061902Z_rank10_n_5.lspool");
  add("train_20261123T061902Z_rank0_n_3_dump1.json");
  add("train_20261123T061902Z_rank1_n_3.json");
  EXPECT_EQ(newest().path, in_folder("train_20261123T061902Z_rank1_n_3.json"));
  EXPECT_THAT(newest().line, HasSubstr("the newest of 5 traces"));
  EXPECT_THAT(newest().line,
              EndsWith("; it is rank 1, and ranks 1, 2 and 10 of its run are here: to "
                       "open another one, name its file, such as '" +
                       in_folder("train_20261123T061902Z_rank2_n_4.json") + "'"));
}

TEST_F(NewestTraceTest, RanksInNamesOfOtherToolsAreOneRun) {
  add("other_rank5.json");
  for (const char* name : {"rank3.json.gz", "rank0.json.gz", "rank2.json.gz", "rank1.json.gz"})
    add(name);
  EXPECT_EQ(newest().path, in_folder("rank0.json.gz"));
  EXPECT_THAT(newest().line, HasSubstr("the newest of 5 traces"));
  EXPECT_THAT(newest().line, HasSubstr("; it is rank 0, and ranks 0 to 3 of its run are here"));
  EXPECT_THAT(newest().line, EndsWith("such as '" + in_folder("rank1.json.gz") + "'"));
  add("job_rank-12_of_16.pt.trace.json");
  add("job_rank-7_of_16.pt.trace.json");
  EXPECT_EQ(newest().path, in_folder("job_rank-7_of_16.pt.trace.json"));
  EXPECT_THAT(newest().line, HasSubstr("it is rank 7, and ranks 7 and 12 of its run"));
  add("frank1.json");  // "rank" is no word in it
  add("rank_of_matrices.json");
  EXPECT_EQ(newest().path, in_folder("rank_of_matrices.json"));
  EXPECT_THAT(newest().line, EndsWith("in '" + folder_.string() + "'"));
}

TEST_F(NewestTraceTest, ADumpThatIsNewestIsOpenedItself) {
  add("train_20261123T061902Z_rank0_n_3.lspool");
  add("train_20261123T061902Z_rank1_n_4.lspool");
  add("train_20261123T061902Z_rank1_n_4_dump1.lspool");
  EXPECT_EQ(newest().path, in_folder("train_20261123T061902Z_rank1_n_4_dump1.lspool"));
}

TEST_F(NewestTraceTest, AFolderWithoutTracesIsAnErrorAndFoldersInItDoNotCount) {
  fs::create_directories(folder_ / "inner.json");
  std::ofstream(folder_ / "inner.json" / "a.json") << "{}";
  const auto found = newest_trace_in(folder_.string());
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, AllOf(HasSubstr("found a folder without one: '"),
                                           HasSubstr("lanescope record -o '")));
}

}  // namespace
}  // namespace lanescope
