#include "lanescope/ranks/summary_text.h"

#include <gtest/gtest.h>

#include "lanescope/ranks/job_helpers_test.h"
#include "lanescope/ranks/part_file.h"

namespace lanescope::ranks {
namespace {

RankSummary drawn() {
  DrawnRank rank(3, 8, 77);
  rank.step(10, 0, 600, 40, 100).call(600, 700, 90, 1000, 5).call(650, 720, 0, 2000);
  RankSummary summary = rank.summary();
  summary.groups[0].ranks = {0, 2, 4, 6, 7};
  summary.host_name = "node \"1\"\n";
  summary.host_parts = {{"code", 12}};
  summary.step_unit = "20 x Adam";
  return summary;
}

TEST(SummaryTextTest, WritingAndReadingGivesTheSameText) {
  const std::string text = write_summary(drawn());
  const Result<RankSummary> read = read_summary(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(write_summary(*read), text);
  EXPECT_EQ(read->groups[0].ranks, (std::vector<std::int64_t>{0, 2, 4, 6, 7}));
  EXPECT_EQ(read->host_name, "node \"1\"\n");
  EXPECT_EQ(read->collectives[1].start_ns, 727'000);
  EXPECT_EQ(read->steps[0].number, 10);
  EXPECT_EQ(read->step_unit, "20 x Adam");
}

TEST(SummaryTextTest, EveryCutIsRefused) {
  const std::string text = write_summary(drawn());
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(read_summary(std::string_view(text).substr(0, size))) << size;
}

TEST(SummaryTextTest, AnIndexThatIsOutOfRangeIsRefused) {
  std::string text = write_summary(drawn());
  const std::string from = "\"collectives\":[[0,0";
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, from.size(), "\"collectives\":[[9,0");
  const Result<RankSummary> read = read_summary(text);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("a kind or a step that is not there"), std::string::npos);
}

TEST(SummaryTextTest, ASummaryIsNeverLongerThanItsLimit) {
  RankSummary summary = drawn();
  for (int i = 0; i < 100'000; ++i) summary.collectives.push_back(summary.collectives[0]);
  const std::string text = write_summary(summary);
  EXPECT_LE(text.size(), kMostSummaryBytes);
  const Result<RankSummary> read = read_summary(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->dropped_collectives + read->collectives.size(), 100'002u);
}

TEST(SummaryTextTest, APartThatWasCutSaysSo) {
  const std::vector<RankFile> files = {{"a", drawn()}, {"b", Error{Errc::kIo, "cannot be opened"}}};
  const std::string text = write_part(files);
  const auto whole = read_part(text, "part");
  ASSERT_TRUE(whole);
  ASSERT_EQ(whole->size(), 2u);
  EXPECT_EQ(std::get<Error>((*whole)[1].content).message, "cannot be opened");
  const auto cut = read_part(std::string_view(text).substr(0, text.size() - 8), "part");
  ASSERT_TRUE(cut);
  EXPECT_NE(std::get<Error>(cut->back().content).message.find("ends early"), std::string::npos);
  EXPECT_FALSE(read_part("{}", "part"));
}

}  // namespace
}  // namespace lanescope::ranks
