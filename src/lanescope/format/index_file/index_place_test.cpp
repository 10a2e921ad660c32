// What is told from an index by its first bytes, and what is said about it.
#include "lanescope/format/index_file/index_place.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "lanescope/format/index_file/index_layout.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/format/index_file/trace_folder_test.h"

namespace lanescope::format {
namespace {

namespace fs = std::filesystem;

class IndexPlaceTest : public TraceFolderTest {
 protected:
  void SetUp() override {
    TraceFolderTest::SetUp();
    unsetenv("LANESCOPE_INDEX");
    index_ = index_path_of(trace_);
  }
  std::string said() const {
    OtherFiles others;
    others.look_next_to(trace_);
    return others.text().value_or("");
  }
  fs::path index_;
};

TEST_F(IndexPlaceTest, NothingAnIndexAndAnIndexThatWasCutAreNoFilesOfOthers) {
  EXPECT_EQ(find_index_place(index_), IndexPlace::kFree);
  const std::string_view magic(kIndexMagic, sizeof(kIndexMagic));
  for (std::size_t size = 0; size <= magic.size(); ++size) {
    write(index_, magic.substr(0, size));
    EXPECT_EQ(find_index_place(index_), IndexPlace::kFree) << size;
  }
  write(index_, std::string(magic) + "of another version");
  EXPECT_EQ(find_index_place(index_), IndexPlace::kFree);
  EXPECT_EQ(said(), "");
}

TEST_F(IndexPlaceTest, AFileThatBeginsOtherwiseIsNamed) {
  for (const char* text : {"l", "LSINDEX", "LSINDEY\n", "notes of mine"}) {
    write(index_, text);
    const bool is_cut = std::string_view(text) == "LSINDEX";
    EXPECT_EQ(find_index_place(index_), is_cut ? IndexPlace::kFree : IndexPlace::kOther) << text;
  }
  EXPECT_EQ(said(), index_.string() +
                        " is not an index of lanescope, and left as it was: move it, or let "
                        "lanescope index --force write over it");
}

TEST_F(IndexPlaceTest, AFolderAndAPipeAreNamedAndNotOpened) {
  fs::create_directory(index_);
  EXPECT_EQ(find_index_place(index_), IndexPlace::kNoFile);
  EXPECT_NE(said(), "");
  fs::remove(index_);
  ASSERT_EQ(::mkfifo(index_.c_str(), 0600), 0);
  EXPECT_EQ(find_index_place(index_), IndexPlace::kNoFile);  // without waiting for a writer
}

TEST_F(IndexPlaceTest, AnIndexThatNoCommandWouldUseIsNotLookedFor) {
  write(index_, "notes of mine");
  setenv("LANESCOPE_INDEX", "off", 1);
  EXPECT_EQ(said(), "");
  unsetenv("LANESCOPE_INDEX");
  EXPECT_NE(said(), "");
}

TEST_F(IndexPlaceTest, ManyFilesAreOneLine) {
  OtherFiles others;
  for (const char* name : {"b.json", "a.json", "b.json", "c.json"}) {
    write(index_path_of(folder_ / name), "notes of mine");
    others.look_next_to(folder_ / name);
  }
  ASSERT_TRUE(others.text());
  EXPECT_TRUE(others.text()->starts_with(index_path_of(folder_ / "a.json").string() +
                                         " and 2 others are not an index"));
}

}  // namespace
}  // namespace lanescope::format
