// A recorder with a budget, of which the test says what it costs: what the sources are asked to
// leave out, and what the recording says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/base/json_value.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler.h"
#include "lanescope/record/activity_source.h"
#include "lanescope/record/thread_writer.h"
#include "recording_folder.h"

namespace lanescope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

// What it was asked for; the same again counts once.
struct AskedSource {
  std::mutex mutex;
  std::vector<std::uint32_t> options;
  LanescopeActivitySource table{};
  AskedSource() {
    table.abi = LANESCOPE_RECORD_ABI;
    table.activities = LANESCOPE_ACTIVITY_CPU;
    table.name = "asked";
    table.self = this;
    table.start = [](void* self, std::uint32_t wanted, char*, std::size_t) {
      static_cast<AskedSource*>(self)->set(wanted);
      return 0;
    };
    table.change = [](void* self, std::uint32_t wanted) {
      static_cast<AskedSource*>(self)->set(wanted);
    };
    EXPECT_EQ(lanescope_register_source(&table), 0);
  }
  ~AskedSource() { lanescope_unregister_source(&table); }
  void set(std::uint32_t wanted) {
    const std::lock_guard lock(mutex);
    if (options.empty() || options.back() != wanted) options.push_back(wanted);
  }
  std::uint32_t asked() {
    const std::lock_guard lock(mutex);
    return options.empty() ? 0 : options.back();
  }
};

class CostBudgetTest : public RecordingFolderTest {
 protected:
  std::unique_ptr<record::Recorder> open(double budget_ratio, std::uint32_t options = 0) const {
    auto recorder = record::Recorder::open({.spool_path = (directory_ / "x.lspool").string(),
                                            .free_name = true,
                                            .budget_ratio = budget_ratio,
                                            .options = options});
    EXPECT_TRUE(recorder) << recorder.error().message;
    return std::move(recorder).value();
  }
  Trace read(const record::Recorder& recorder) const {
    auto trace = format::read_spool(recorder.spool_path());
    EXPECT_TRUE(trace) << trace.error().message;
    return std::move(trace).value();
  }

  // Goes on as a thread whose callbacks take half of all time except in pauses, until `what` holds.
  bool costs_until(const std::function<bool()>& what) {
    using Clock = std::chrono::steady_clock;
    LanescopeWriter* const writer = record::thread_writer();
    std::uint64_t last = record::ticks();
    for (const auto until = Clock::now() + std::chrono::seconds(60); Clock::now() < until;) {
      if (what()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::uint64_t now = record::ticks();
      if ((source_.asked() & LANESCOPE_RECORD_PAUSED) == 0) {
        auto& ticks = writer->cost.ticks[kLanescopeOperators];
        ticks.store(ticks.load() + (now - last) / 2);
        writer->cost.calls.store(writer->cost.calls.load() + 1000);
      }
      last = now;
    }
    return false;
  }

  AskedSource source_;
};

constexpr std::uint32_t kDetails = LANESCOPE_RECORD_SHAPES | LANESCOPE_RECORD_STACK;

TEST_F(CostBudgetTest, DetailsGoOneAfterTheOtherThenOperatorsPauseAndTheTraceSaysSo) {
  auto recorder = open(0.1, kDetails);
  ASSERT_TRUE(recorder->start());
  EXPECT_EQ(source_.asked(), kDetails | LANESCOPE_RECORD_MEASURE);
  EXPECT_EQ(lanescope_short_operator_ticks.load(), 0u);
  // Where the recorder's thread waits for a processor, operators pause before a level begins.
  const auto is_paused = [&] { return (source_.asked() & LANESCOPE_RECORD_PAUSED) != 0; };
  const auto has_left_out_short = [&] {
    return ::testing::Matches(Contains(HasSubstr("without short operators (under ")))(
        recorder->notes());
  };
  ASSERT_TRUE(costs_until([&] { return has_left_out_short() && is_paused(); }));
  EXPECT_EQ(lanescope_short_operator_ticks.load(), 0u);
  recorder->close();
  constexpr std::uint32_t kMeasure = LANESCOPE_RECORD_MEASURE;
  std::vector<std::uint32_t> asked = source_.options;
  std::erase_if(asked, [](std::uint32_t options) { return options & LANESCOPE_RECORD_PAUSED; });
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  ASSERT_GE(asked.size(), 3u);
  asked.resize(3);
  EXPECT_THAT(asked, ElementsAre(kDetails | kMeasure, LANESCOPE_RECORD_STACK | kMeasure, kMeasure));
  EXPECT_THAT(source_.options, Contains(LANESCOPE_RECORD_PAUSED | kMeasure));
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("without input shapes: recording cost ")));
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("without stacks: recording cost ")));
  EXPECT_THAT(recorder->notes(), Contains(HasSubstr("with operators in parts only")));

  const Trace trace = read(*recorder);
  const auto thinned = parse_json(trace.metadata_json("lanescope_thinned").value_or(""));
  ASSERT_TRUE(thinned && thinned->is_array());
  std::vector<std::string> words;
  std::int64_t before = trace.base_time_ns() + trace.window_start_ns();
  for (const JsonValue& period : thinned->items) {
    const std::string what(period.find("what")->text);
    if (what != "operators") words.push_back(what);
    if (what == "operators") {
      EXPECT_GE(*period.find("pause_count")->integer, 1);
    } else if (what == "short operators") {
      EXPECT_GT(*period.find("shorter_than_ns")->integer, 0);
    }
    EXPECT_GT(period.find("share_ratio")->number, 0.1);
    // The two clocks of the trace and of the list were read one after the other.
    EXPECT_GE(*period.find("from_ns")->integer + 1'000'000, before);
    before = *period.find("to_ns")->integer;
    EXPECT_GE(before, *period.find("from_ns")->integer);
  }
  EXPECT_THAT(words, ElementsAre("input shapes", "stacks", "short operators"));
  EXPECT_EQ(thinned->items.back().find("what")->text, "operators");
  EXPECT_LE(before, trace.base_time_ns() + trace.window_end_ns() + 1'000'000);
  const auto cost = parse_json(trace.metadata_json("lanescope_cost").value_or(""));
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->find("budget_ratio")->number, 0.1);
  EXPECT_GT(cost->find("share_ratio")->number, 0.1);
}

TEST_F(CostBudgetTest, ARangeThatIsLeftOutLeavesNoRecordAndIsCounted) {
  auto recorder = open(0.5);
  ASSERT_TRUE(recorder->start());
  const auto name = [](const char* text) { return record::intern_text(text, std::strlen(text)); };
  record::begin_nested({.name = name("outer"), .handle = 1});
  EXPECT_EQ(record::innermost_range(1).name, name("outer"));
  EXPECT_GT(record::innermost_range(1).ticks, 0u);
  record::leave_out_nested(2, &LanescopeCost::left_out);
  EXPECT_EQ(record::innermost_range(2).ticks, 0u);
  record::begin_nested({.name = name("inner"), .handle = 3});
  record::end_nested(3);
  record::end_nested(2);
  EXPECT_EQ(record::innermost_range(1).name, name("outer"));
  record::end_nested(1);
  recorder->close();
  const Trace trace = read(*recorder);
  std::vector<std::string> names;
  for (const StringId id : trace.slices().name) names.emplace_back(trace.text(id));
  EXPECT_THAT(names, ::testing::IsSupersetOf({"outer", "inner"}));
  EXPECT_FALSE(trace.import_stats().lost_anything());
  EXPECT_THAT(std::string(trace.metadata_json("lanescope_cost").value_or("")),
              HasSubstr("\"left_out_operators\": 1, "));
}

TEST_F(CostBudgetTest, WhatFitsIsRecordedWholeAndItsCostIsWritten) {
  auto recorder = open(0.5, kDetails);
  ASSERT_TRUE(recorder->start());
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  recorder->close();
  EXPECT_EQ(source_.asked(), kDetails | LANESCOPE_RECORD_MEASURE);
  EXPECT_TRUE(recorder->notes().empty());
  const Trace trace = read(*recorder);
  EXPECT_FALSE(trace.metadata_json("lanescope_thinned"));
  EXPECT_THAT(std::string(trace.metadata_json("lanescope_cost").value_or("")),
              HasSubstr("\"budget_ratio\": 0.5, "));
}

TEST_F(CostBudgetTest, WithoutABudgetNothingIsMeasuredOrLeftOut) {
  auto recorder = open(0, kDetails);
  ASSERT_TRUE(recorder->start());
  EXPECT_EQ(source_.asked(), kDetails);
  std::uint32_t looks = 0;
  ASSERT_TRUE(costs_until([&] { return ++looks == 500; }));
  EXPECT_EQ(source_.asked(), kDetails);
  recorder->close();
  EXPECT_FALSE(read(*recorder).metadata_json("lanescope_cost"));
}

// A tenth of the time, so 80 ms beyond a budget of 1 % after 0.9 s.
TEST_F(CostBudgetTest, AGpuThatCostsTooMuchEndsTheRecordingAndNothingElse) {
  auto recorder = open(0.01);
  ASSERT_TRUE(recorder->start());
  { LANESCOPE_RECORD_FUNCTION("before"); }
  LanescopeWriter* const writer = record::thread_writer();
  std::uint64_t last = record::ticks();
  const auto has_ended = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::uint64_t now = record::ticks();
    auto& ticks = writer->cost.ticks[kLanescopeGpuCalls];
    ticks.store(ticks.load() + (now - last) / 10);
    last = now;
    return (source_.asked() & LANESCOPE_RECORD_ENDED) != 0;
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!has_ended() && std::chrono::steady_clock::now() < until) {
  }
  EXPECT_FALSE(record::is_recording());
  { LANESCOPE_RECORD_FUNCTION("after"); }
  recorder->stop();
  EXPECT_THAT(recorder->notes(),
              Contains(HasSubstr("s on nothing is recorded: recording the GPU")));
  ASSERT_TRUE(recorder->start());  // the debt is not paid
  EXPECT_FALSE(record::is_recording());
  recorder->stop();
  recorder->close();
  const Trace trace = read(*recorder);
  std::vector<std::string> names;
  for (const StringId id : trace.slices().name) names.emplace_back(trace.text(id));
  EXPECT_THAT(names, Contains("before"));
  EXPECT_THAT(names, ::testing::Not(Contains("after")));
  EXPECT_LT(trace.window_end_ns() - trace.window_start_ns(), 40'000'000'000);
  EXPECT_THAT(*trace.metadata_json("lanescope_thinned"), HasSubstr("everything"));
}

TEST_F(CostBudgetTest, ASessionWithoutABudgetGetsEverythingMeanwhile) {
  auto recorder = open(0.01, kDetails);
  ASSERT_TRUE(recorder->start());
  ASSERT_TRUE(costs_until([&] { return (source_.asked() & LANESCOPE_RECORD_PAUSED) != 0; }));
  {
    auto whole = open(0, kDetails);
    ASSERT_TRUE(whole->start());
    EXPECT_EQ(source_.asked(), kDetails | LANESCOPE_RECORD_MEASURE);
  }
  EXPECT_EQ(source_.asked() & kDetails, 0u);  // the budget counts again
  recorder->close();
}

TEST_F(CostBudgetTest, ABudgetOutOfItsRangeIsRefused) {
  for (const double wrong : {-0.01, 0.0009, 0.51, std::nan("")}) {
    const auto recorder = record::Recorder::open(
        {.spool_path = (directory_ / "y.lspool").string(), .budget_ratio = wrong});
    ASSERT_FALSE(recorder) << wrong;
    EXPECT_EQ(recorder.error().code, Errc::kInvalidArgument);
  }
}

}  // namespace
}  // namespace lanescope
