// When a text that was kept of a file is used again, and what makes it stale or suspect.
#include "lanescope/format/index_file/kept_texts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lanescope/format/index_file/trace_folder_test.h"

namespace lanescope::format {
namespace {
namespace fs = std::filesystem;

class KeptTextsTest : public TraceFolderTest {
 protected:
  void SetUp() override {
    TraceFolderTest::SetUp();
    write(trace_, "{\"traceEvents\": []}");
    index_.cache = IndexCache(folder_ / "cache");
    options_.write_from_bytes = 0;
  }
  KeptText ask() const {
    const KeepTexts keep = keep_texts(options_, index_);
    return keep ? keep(trace_) : KeptText();
  }
  void keep(std::string_view text) const {
    const KeptText kept = ask();
    ASSERT_TRUE(kept.keep);
    kept.keep(text);
  }
  fs::path text_file() const { return index_.cache->text_of(trace_); }
  std::uint64_t texts_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache" / "texts"))
      sum += entry.file_size();
    return sum;
  }

  KeptTextOptions options_{"ranks", "1"};
  IndexOptions index_;
};

TEST_F(KeptTextsTest, ATextIsFoundAgain) {
  EXPECT_FALSE(ask().text);
  keep("summary\nof two lines");
  EXPECT_EQ(ask().text, "summary\nof two lines");
  keep("another");
  EXPECT_EQ(ask().text, "another");
}

TEST_F(KeptTextsTest, AFileThatChangedHasNone) {
  keep("summary");
  const auto time = fs::last_write_time(trace_);
  write(trace_, "{\"traceEvents\": [ ]}");  // a byte longer
  fs::last_write_time(trace_, time);
  EXPECT_FALSE(ask().text);
  write(trace_, "{\"traceEvents\": [}]");  // as long, with the same time, and other bytes
  fs::last_write_time(trace_, time);
  EXPECT_FALSE(ask().text);
  write(trace_, "{\"traceEvents\": []}");
  fs::last_write_time(trace_, time + std::chrono::seconds(1));
  EXPECT_FALSE(ask().text);
  fs::last_write_time(trace_, time);
  EXPECT_TRUE(ask().text);
}

TEST_F(KeptTextsTest, NothingIsKeptOfAFileThatChangedWhileItWasRead) {
  const KeptText kept = ask();
  write(trace_, "{\"traceEvents\": [1]}");
  kept.keep("of the old one");
  EXPECT_FALSE(ask().text);
  EXPECT_FALSE(fs::exists(text_file()));
}

TEST_F(KeptTextsTest, ATextOfAnotherVersionOrKindIsNotUsed) {
  keep("summary");
  options_.version = "2";
  EXPECT_FALSE(ask().text);
  options_ = {"lanes", "1"};
  options_.write_from_bytes = 0;
  EXPECT_FALSE(ask().text);
}

TEST_F(KeptTextsTest, ADamagedTextIsNotUsed) {
  keep("summary");
  const std::string whole = read(text_file());
  std::string changed = whole;
  changed.back() = 'Y';
  for (const std::string& text : {changed, whole.substr(0, whole.size() - 1), whole + "y",
                                  whole.substr(0, 20), std::string(), std::string(5000, 'x')}) {
    write(text_file(), text);
    EXPECT_FALSE(ask().text) << text;
  }
  write(text_file(), whole);
  EXPECT_EQ(ask().text, "summary");
}

// Whoever may write the file could have made its hash as well.
TEST_F(KeptTextsTest, ATextThatOthersMayWriteIsNotUsed) {
  keep("summary");
  ::chmod(text_file().c_str(), 0666);
  EXPECT_FALSE(ask().text);
  ::chmod(text_file().c_str(), 0600);
  EXPECT_TRUE(ask().text);
  ::chmod(text_file().parent_path().c_str(), 0777);
  EXPECT_FALSE(ask().text);
  ::chmod(text_file().parent_path().c_str(), 0700);
  fs::rename(text_file(), folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", text_file());
  EXPECT_FALSE(ask().text);
  fs::remove(text_file());
  ASSERT_EQ(::mkfifo(text_file().c_str(), 0600), 0);
  EXPECT_FALSE(ask().text);  // and does not wait for a writer
}

TEST_F(KeptTextsTest, ThisUsersTextsAreNotForOthers) {
  keep("summary");
  struct stat info {};
  ASSERT_EQ(::stat(text_file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0077, 0u);
}

TEST_F(KeptTextsTest, SmallFilesAndLongTextsAreNotKept) {
  options_.most_text_bytes = 7;
  keep("8 bytes.");
  EXPECT_FALSE(ask().text);
  keep("7 bytes");
  EXPECT_TRUE(ask().text);
  options_.write_from_bytes = fs::file_size(trace_) + 1;
  EXPECT_FALSE(ask().text);
  EXPECT_FALSE(ask().keep);
}

TEST_F(KeptTextsTest, TheUseOfIndexesDecides) {
  keep("summary");
  index_.use = IndexUse::kRead;
  EXPECT_TRUE(ask().text);
  EXPECT_FALSE(ask().keep);
  index_.use = IndexUse::kOff;
  EXPECT_FALSE(ask().text);
}

TEST_F(KeptTextsTest, PipesAndMissingFilesHaveNone) {
  fs::remove(trace_);
  EXPECT_FALSE(ask().keep);
  ASSERT_EQ(::mkfifo(trace_.c_str(), 0600), 0);
  EXPECT_FALSE(ask().keep);
}

// 30 texts of 1 MB in a room of 20 MB, counted every 8 MB: what is kept stays in it.
TEST_F(KeptTextsTest, TheRoomIsBounded) {
  options_.most_text_bytes = 2'000'000;
  options_.most_cache_bytes = 20'000'000;
  const KeepTexts keep = keep_texts(options_, index_);
  const std::string text(1'000'000, 't');
  for (int i = 0; i < 30; ++i) {
    const fs::path trace = folder_ / ("rank" + std::to_string(i) + ".json");
    write(trace, "{}");
    keep(trace).keep(text);
    EXPECT_LE(texts_bytes(), 20'100'000u);
  }
  EXPECT_EQ(keep(folder_ / "rank29.json").text, text);
  EXPECT_FALSE(keep(folder_ / "rank0.json").text);
}

}  // namespace
}  // namespace lanescope::format
