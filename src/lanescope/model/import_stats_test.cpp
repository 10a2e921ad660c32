#include "lanescope/model/import_stats.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace lanescope {
namespace {

TEST(ImportStatsTest, EveryIssueHasANameOfItsOwnAndADescription) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kImportIssueCount; ++i) {
    const ImportIssueInfo& info = import_issue_info(static_cast<ImportIssue>(i));
    ASSERT_NE(info.name, nullptr) << i;
    ASSERT_NE(info.description, nullptr) << i;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_STRNE(info.description, "") << info.name;
  }
}

TEST(ImportStatsTest, TheLastIssueIsCountedAddedAndKeepsItsFirstPlace) {
  constexpr auto kLast = static_cast<ImportIssue>(kImportIssueCount - 1);
  ImportStats part, whole;
  part.count(kLast, 7);
  part.count(kLast, 9, 2);
  whole.add(part);
  EXPECT_EQ(whole[kLast].count, 3u);
  EXPECT_EQ(whole[kLast].first_offset, 7u);
}

}  // namespace
}  // namespace lanescope
