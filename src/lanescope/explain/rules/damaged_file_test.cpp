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

// All was read: no word of a missing end, and the verdict stands.
TEST(DamagedFileTest, TellsAWrongChecksumFromAMissingEnd) {
  Sketch sketch;
  sketch.op("a", 0, 10).builder().stats().count(ImportIssue::kWrongChecksum, 4711);
  const Trace trace = sketch.trace();
  EXPECT_FALSE(trace.import_stats().is_truncated() || trace.import_stats().lost_anything());
  const auto finding = find_by_rule(trace, "damaged-file");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("The checksum of the compressed file is wrong"));
  EXPECT_THAT(finding->brief.pattern, HasSubstr("its text is whole"));
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "wrong-checksum");
}

TEST(DamagedFileTest, SpeaksOfTheMissingEndWhereTheChecksumIsWrongToo) {
  Sketch sketch;
  sketch.op("a", 0, 10).builder().stats().count(ImportIssue::kTruncatedFile, 4711);
  sketch.builder().stats().count(ImportIssue::kWrongChecksum, 5000);
  const auto finding = find_by_rule(sketch.trace(), "damaged-file");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("end is missing"));
  EXPECT_EQ(finding->evidence.size(), 2u);
}

TEST(DamagedFileTest, IsQuietAboutMendedTextAndHalfArrows) {
  Sketch sketch;
  sketch.op("a", 0, 10).builder().stats().count(ImportIssue::kUnescapedText, 5);
  sketch.builder().stats().count(ImportIssue::kOrphanFlow, 5);
  EXPECT_FALSE(find_by_rule(sketch.trace(), "damaged-file"));
}

}  // namespace
}  // namespace lanescope::explain
