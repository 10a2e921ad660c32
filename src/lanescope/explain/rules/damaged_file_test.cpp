#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::Sketch;

TEST(DamagedFileTest, SpeaksOfACutFileWithItsByte) {
  Sketch sketch;
  sketch.op("a", 0, 10).builder().stats().count(ImportIssue::kTruncatedFile, 4711);
  const auto finding = find_by_rule(sketch.trace(), "damaged-file");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("end is missing"));
  EXPECT_EQ(finding->evidence.at(0).text.values.at(3).integer, 4711);
}

TEST(DamagedFileTest, IsQuietAboutMendedTextAndHalfArrows) {
  Sketch sketch;
  sketch.op("a", 0, 10).builder().stats().count(ImportIssue::kUnescapedText, 5);
  sketch.builder().stats().count(ImportIssue::kOrphanFlow, 5);
  EXPECT_FALSE(find_by_rule(sketch.trace(), "damaged-file"));
}

}  // namespace
}  // namespace lanescope::explain
