#include "lanescope/cli/open_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lanescope::cli {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DamageLinesTest, NothingLostSaysNothing) {
  ImportStats stats;
  stats.count(ImportIssue::kOutOfOrder, 12, 3);  // normal for Kineto
  stats.count(ImportIssue::kOrphanFlow);         // so is this
  EXPECT_THAT(damage_lines(stats, "a.json"), IsEmpty());
}

TEST(DamageLinesTest, LostComesFirstAndTheLastLineNamesTheWayToMore) {
  ImportStats stats;
  stats.count(ImportIssue::kTruncatedFile, 4711);
  stats.count(ImportIssue::kUnescapedText, 55);
  stats.count(ImportIssue::kUnescapedText, 99);
  EXPECT_THAT(damage_lines(stats, "a.json"),
              ElementsAre(AllOf(HasSubstr("lost: "), HasSubstr("(at byte 4,711)")),
                          AllOf(HasSubstr("repaired: "), HasSubstr("(2 times, first at byte 55)"),
                                HasSubstr("; see lanescope info a.json"))));
}

}  // namespace
}  // namespace lanescope::cli
