#include "lanescope/cli/open_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "lanescope/format/read_trace.h"

namespace lanescope::cli {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

// The last event of a cut file is broken by the cut; one in the middle is not.
TEST(DamageLinesTest, TheEventAtTheCutIsNotSaidApart) {
  ImportStats at_the_cut, before;
  at_the_cut.count(ImportIssue::kTruncatedFile, 1'000'000);
  at_the_cut.count(ImportIssue::kEventLost, 999'700);
  before.count(ImportIssue::kTruncatedFile, 1'000'000);
  before.count(ImportIssue::kEventLost, 55);
  const char event_lost[] = "could not be understood";
  EXPECT_THAT(damage_lines(at_the_cut, "a.json"),
              ElementsAre(AllOf(HasSubstr("cut off"), Not(HasSubstr(event_lost)))));
  EXPECT_THAT(damage_lines(before, "a.json"), ElementsAre(HasSubstr(event_lost)));
}

Trace read(std::string_view text) {
  auto trace = format::read_trace_bytes(text);
  EXPECT_TRUE(trace);
  return trace ? std::move(*trace) : Trace();
}

TEST(NoTimesTest, SaysWhatWasExpectedWhenNoEventHasATime) {
  const auto text = no_times_text(read(R"({"traceEvents":[
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":"12ns","dur":1},
    {"ph":"B","name":"b","pid":1,"tid":1,"ts":"1e999"},
    {"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}]})"),
                                  "a.json");
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("a.json: expected events with a time, found 2 of which none has one "
                               "that can be read (the first at byte 21)"));
  EXPECT_THAT(*text, HasSubstr("\"ts\" and \"dur\" are numbers of microseconds"));
}

TEST(NoTimesTest, OneTimeOrNoEventsAtAllAreATrace) {
  EXPECT_FALSE(no_times_text(read(R"({"traceEvents":[{"ph":"X","name":"a","ts":"12ns","dur":1},
                                      {"ph":"X","name":"b","ts":1,"dur":1}]})"),
                             "a.json"));
  EXPECT_FALSE(no_times_text(read(R"({"traceEvents":[{"ph":"i","name":"a","ts":"12ns"},
                                      {"ph":"i","name":"b","ts":1}]})"),
                             "a.json"));
  EXPECT_FALSE(no_times_text(read(R"({"schemaVersion":1,"traceEvents":[]})"), "a.json"));
}

}  // namespace
}  // namespace lanescope::cli
