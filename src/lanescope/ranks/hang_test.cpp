#include "lanescope/ranks/hang.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace lanescope::ranks {
namespace {

// One rank's dump as JSON, call by call.
class DrawnDump {
 public:
  DrawnDump(std::int64_t rank, std::int64_t world) : rank_(rank), world_(world) {}

  DrawnDump& call(std::int64_t sequence, const std::string& name, std::int64_t elements,
                  const std::string& state = "completed", const std::string& group = "0",
                  bool p2p = false) {
    entries_ += fmt::format(
        R"({}{{"record_id":{},"process_group":["{}","{}"],"collective_seq_id":{},"p2p_seq_id":{},)"
        R"("profiling_name":"nccl:{}","input_sizes":[[{}]],"input_dtypes":["Float"],)"
        R"("output_sizes":[[{}]],"output_dtypes":["Float"],"state":"{}","is_p2p":{},"retired":{}}})",
        entries_.empty() ? "" : ",", first_++, group, group == "0" ? "default_pg" : "tp",
        p2p ? 0 : sequence, p2p ? sequence : 0, name, elements, elements, state, p2p,
        state == "completed");
    return *this;
  }
  // The ring has overwritten what came before.
  DrawnDump& wrapped(std::int64_t first) {
    first_ = first;
    return *this;
  }
  DumpFile file() const {
    std::string ranks;
    for (std::int64_t i = 0; i < world_; ++i) ranks += (i == 0 ? "" : ", ") + std::to_string(i);
    return {fmt::format("nccl_trace_rank_{}", rank_),
            read_flight_dump(fmt::format(R"({{"version":"2.10","pg_config":{{"0":{{"name":"0",)"
                                         R"("desc":"default_pg","ranks":"[{}]"}},"5":{{"name":"5",)"
                                         R"("desc":"tp","ranks":"[0, 1]"}}}},"entries":[{}]}})",
                                         ranks, entries_),
                             fmt::format("nccl_trace_rank_{}", rank_))};
  }

 private:
  std::int64_t rank_, world_, first_ = 0;
  std::string entries_;
};

HangReport found(const std::vector<DrawnDump>& dumps) {
  std::vector<DumpFile> files;
  for (const DrawnDump& dump : dumps) files.push_back(dump.file());
  auto report = find_hang(std::move(files));
  EXPECT_TRUE(report);
  return *std::move(report);
}

TEST(HangTest, RanksThatCallDifferentSizesAreNamed) {
  const auto report = found({DrawnDump(0, 3).call(1, "all_reduce", 8).call(2, "all_reduce", 8),
                             DrawnDump(1, 3).call(1, "all_reduce", 8).call(2, "all_reduce", 9),
                             DrawnDump(2, 3).call(1, "all_reduce", 8).call(2, "all_reduce", 8)});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, HangKind::kMismatch);
  EXPECT_EQ(report.findings[0].ranks, std::vector<std::int64_t>{1});
  EXPECT_EQ(
      report.findings[0].text,
      "collective 2 of group 0 (default_pg): rank 1 calls all_reduce of 9 Float; ranks 0 and 2 "
      "call all_reduce of 8 Float");
}

TEST(HangTest, SizesOfABroadcastAndAnAllToAllMayDiffer) {
  const auto report = found({DrawnDump(0, 2).call(1, "broadcast", 8).call(2, "all_to_all", 8),
                             DrawnDump(1, 2).call(1, "broadcast", 9).call(2, "all_to_all", 9)});
  EXPECT_TRUE(report.findings.empty());
}

TEST(HangTest, TheRankThatStoppedIsNamedWithItsLastCall) {
  const auto report =
      found({DrawnDump(0, 2).call(1, "all_reduce", 8).call(2, "all_reduce", 4, "started"),
             DrawnDump(1, 2).call(1, "all_reduce", 8)});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, HangKind::kNotCalled);
  EXPECT_EQ(report.findings[0].text,
            "collective 2 of group 0 (default_pg): rank 1 has not called all_reduce of 4 Float, in "
            "which rank 0 waits. Rank 1 is in no collective: it stopped in its own code after "
            "collective 1 (all_reduce of 8 Float)");
}

// Rank 2 waits in the job's group for rank 1, which waits in the small group for rank 0.
TEST(HangTest, ARankThatWaitsElsewhereIsNotTheCause) {
  const auto report =
      found({DrawnDump(0, 3).call(1, "all_reduce", 8),
             DrawnDump(1, 3).call(1, "all_reduce", 8).call(1, "all_gather", 2, "started", "5"),
             DrawnDump(2, 3).call(1, "all_reduce", 8).call(2, "all_reduce", 8, "started")});
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.findings[0].ranks, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(report.findings[1].group, "5 (tp)");
  EXPECT_EQ(report.findings[1].ranks, std::vector<std::int64_t>{0});
  EXPECT_NE(report.findings[1].text.find("Rank 0 is in no collective"), std::string::npos);
}

TEST(HangTest, ARankWithoutADumpIsMissing) {
  const auto report =
      found({DrawnDump(0, 3).call(1, "all_reduce", 8), DrawnDump(2, 3).call(1, "all_reduce", 8)});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, HangKind::kNoDump);
  EXPECT_EQ(report.findings[0].ranks, std::vector<std::int64_t>{1});
}

TEST(HangTest, ACallThatAllHaveMadeDoesNotAccuseARank) {
  const auto report = found({DrawnDump(0, 2).call(1, "all_reduce", 8, "started"),
                             DrawnDump(1, 2).call(1, "all_reduce", 8, "scheduled")});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, HangKind::kNotEnded);
}

TEST(HangTest, FinishedCallsAreNoFinding) {
  EXPECT_TRUE(
      found({DrawnDump(0, 2).call(1, "all_reduce", 8), DrawnDump(1, 2).call(1, "all_reduce", 8)})
          .findings.empty());
}

// Rank 1 keeps fewer calls: what it has overwritten is unknown, not missing.
TEST(HangTest, OverwrittenCallsAreNotCompared) {
  const auto report = found({DrawnDump(0, 2).call(1, "all_reduce", 7).call(2, "all_reduce", 8),
                             DrawnDump(1, 2).wrapped(50).call(2, "all_reduce", 8)});
  EXPECT_TRUE(report.findings.empty());
}

TEST(HangTest, AReceiveWithoutItsSendIsNamed) {
  const auto report = found({DrawnDump(0, 2)
                                 .call(1, "send 0->1", 8, "completed", "0", true)
                                 .call(2, "recv 0<-1", 8, "started", "0", true),
                             DrawnDump(1, 2).call(1, "recv 1<-0", 8, "completed", "0", true)});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, HangKind::kNotPaired);
  EXPECT_EQ(report.findings[0].ranks, std::vector<std::int64_t>{1});
}

TEST(HangTest, FilesThatDoNotCountAreRemarks) {
  std::vector<DumpFile> files = {DrawnDump(0, 1).call(1, "all_reduce", 8).file()};
  files.push_back({"broken", read_flight_dump("{\"entries\": [", "broken")});
  files.push_back({"noname", read_flight_dump(R"({"version":"2.1","entries":[]})", "noname")});
  files.push_back(DrawnDump(0, 1).file());
  const auto report = find_hang(std::move(files));
  ASSERT_TRUE(report);
  ASSERT_EQ(report->remarks.size(), 3u);
  EXPECT_NE(report->remarks[1].find("does not say its rank"), std::string::npos);
  EXPECT_EQ(report->calls, 1u);
  EXPECT_FALSE(find_hang({}));
}

}  // namespace
}  // namespace lanescope::ranks
