// The second question on a job reads no trace: which summaries are kept, and which are not believed.
#include "lanescope/ranks/read_ranks.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>

#include "lanescope/ranks/summary_text.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::ranks {
namespace {

constexpr char kPath[] = "no/such/rank3.json";

// A store of texts in memory, and a reader that counts.
class ReadRanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.read_trace = [this](const std::string&) -> Result<Trace> {
      ++reads_;
      testing::Sketch sketch;
      sketch.metadata("distributedInfo", R"({"backend":"nccl","rank":3,"world_size":4})");
      for (std::int64_t step = 0; step < calls_; ++step) {
        const std::int64_t at = step * 1000;
        sketch.kernel("gemm", at, 600);
        testing::Fields call;
        call.collective = "allreduce";
        call.elements = 1000;
        call.stream = 20;
        sketch.kernel("ncclDevKernel_AllReduce", at + 600, 300, call);
      }
      return sketch.trace();
    };
    options_.keep_summaries = [this](const std::string& path) {
      KeptText kept;
      if (const auto found = texts_.find(path); found != texts_.end()) kept.text = found->second;
      kept.keep = [this, path](std::string_view text) { texts_[path] = text; };
      return kept;
    };
  }
  RankSummary read(const std::string& path = kPath) {
    const auto files = read_rank_file(path, options_);
    EXPECT_EQ(files.size(), 1u);
    const auto* summary = std::get_if<RankSummary>(&files.front().content);
    EXPECT_NE(summary, nullptr);
    return summary ? *summary : RankSummary();
  }

  ReadRanksOptions options_;
  std::map<std::string, std::string> texts_;
  int reads_ = 0;
  std::int64_t calls_ = 6;
};

TEST_F(ReadRanksTest, TheSecondQuestionReadsNoTrace) {
  const RankSummary first = read();
  EXPECT_EQ(reads_, 1);
  EXPECT_EQ(first.collectives.size(), 6u);
  EXPECT_EQ(read(), first);
  EXPECT_EQ(reads_, 1);
}

TEST_F(ReadRanksTest, TheNameIsTheOneThatWasAskedFor) {
  read();
  texts_["rank3.json"] = texts_[kPath];  // one file by two names
  EXPECT_EQ(read("rank3.json").file, "rank3.json");
  EXPECT_EQ(reads_, 1);
}

TEST_F(ReadRanksTest, ATextThatIsNoSummaryIsReadAgainAndReplaced) {
  const RankSummary first = read();
  const std::string good = texts_[kPath];
  for (const std::string& bad : {std::string(), std::string("{}"), good.substr(0, good.size() / 2),
                                 std::string(300'000, 'x')}) {
    texts_[kPath] = bad;
    reads_ = 0;
    EXPECT_EQ(read(), first);
    EXPECT_EQ(reads_, 1);
    EXPECT_EQ(texts_[kPath], good);
  }
}

// Its text leaves calls out, so the next answer would be another one.
TEST_F(ReadRanksTest, ASummaryThatIsLongerThanItsTextMayBeIsNotKept) {
  options_.read_trace = [this](const std::string&) -> Result<Trace> {
    ++reads_;
    testing::Sketch sketch;
    for (std::int64_t i = 0; i < 3000; ++i) {
      testing::Fields call;
      call.collective = "allreduce";
      call.elements = 1'000'000'000'000 + i % 200;
      call.collective_seq = 1'000'000'000'000'000'000 + i;
      sketch.kernel("ncclDevKernel_AllReduce", i * 1'987'654'321'234, 987'654'321'987, call);
    }
    return sketch.trace();
  };
  const RankSummary first = read();
  ASSERT_EQ(first.collectives.size(), 3000u);
  const auto again = read_summary(write_summary(first));
  ASSERT_TRUE(again);
  ASSERT_LT(again->collectives.size(), 3000u);
  EXPECT_TRUE(texts_.empty());
  EXPECT_EQ(read(), first);
  EXPECT_EQ(reads_, 2);
}

TEST_F(ReadRanksTest, AFileThatCannotBeReadIsNotKept) {
  options_.read_trace = [](const std::string&) -> Result<Trace> {
    return Error{Errc::kCorruptInput, "no trace"};
  };
  const auto files = read_rank_file(kPath, options_);
  EXPECT_TRUE(std::holds_alternative<Error>(files.front().content));
  EXPECT_TRUE(texts_.empty());
}

}  // namespace
}  // namespace lanescope::ranks
