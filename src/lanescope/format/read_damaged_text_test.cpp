// Texts of traces that are damaged, cut or no traces at all: what is still read, and what is counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lanescope/format/read_text_test.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::format {
namespace {

using ::testing::HasSubstr;

TEST(ReadDamagedTextTest, OneBadEventNeverCostsItsNeighbours) {
  const std::string good1 = R"({"ph":"X","name":"first","pid":1,"tid":1,"ts":1,"dur":1})";
  const std::string good2 = R"({"ph":"X","name":"last","pid":1,"tid":1,"ts":9,"dur":1})";
  struct Case {
    const char* event;
    ImportIssue issue;
    bool kept;
  };
  for (const Case& bad : {
           Case{R"({"ph":"X","name":"a "quoted" b","pid":1,"tid":1,"ts":5,"dur":1})",
                ImportIssue::kUnescapedText, true},
           Case{R"({"ph":"X","name":"C:\Users\x","pid":1,"tid":1,"ts":5,"dur":1})",
                ImportIssue::kUnescapedText, true},
           Case{"{\"ph\":\"X\",\"name\":\"new\nline\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1}",
                ImportIssue::kUnescapedText, true},
           Case{"{\"ph\":\"X\",\"name\":\"\xff\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1}",
                ImportIssue::kInvalidUtf8, true},
           Case{R"({"ph":"X","name":"m","pid":1,"tid":1,"ts":5,"dur":1,"args":{"x":nan}})",
                ImportIssue::kNotANumber, true},
           Case{R"({"ph":"X","name":"m","pid":1,"tid":1,"ts":5,"dur":1,"args":{"x":[-inf]}})",
                ImportIssue::kNotANumber, true},
           Case{R"({"ph":"X","name":"m","pid":1,"tid":1,"ts":5,"dur":1,"args":{"x":1,}})",
                ImportIssue::kSyntax, true},
           Case{R"({"ph":"X","name":"m","pid":1 "tid":1,"ts":5,"dur":1})", ImportIssue::kSyntax,
                true},
           Case{R"({"ph":"X","name":"m","pid":1,"tid":1,"ts":5,"dur":1,"args":{"x":1})",
                ImportIssue::kSyntax, true},
           Case{R"({"ph":"X","name":"m","pid":1,"tid":1,"ts":5,"dur":1}})", ImportIssue::kSyntax,
                true},
           Case{R"({"ph":"X","name":"open, "pid":1,"tid":1,"ts":5,"dur":1})",
                ImportIssue::kEventLost, false},
           Case{R"({"ph":"X","name": {{{{ )", ImportIssue::kEventLost, false},
           Case{R"({"ph":"X" : : "ts":5})", ImportIssue::kEventLost, false},
           Case{"17", ImportIssue::kEventLost, false},
           Case{"[1, 2]", ImportIssue::kEventLost, false},
           Case{"null", ImportIssue::kEventLost, false},
           Case{"garbage", ImportIssue::kEventLost, false},
       }) {
    const std::string text =
        "{\"traceEvents\": [\n" + good1 + ",\n" + bad.event + ",\n" + good2 + "\n]}";
    const Trace trace = read_text(text);
    SCOPED_TRACE(text);
    ASSERT_EQ(trace.slices().size(), bad.kept ? 3u : 2u);
    EXPECT_EQ(trace.name(SliceId{0}), "first");
    EXPECT_EQ(trace.name(SliceId{bad.kept ? 2u : 1u}), "last");
    EXPECT_GE(count_of(trace, bad.issue), 1u);
    EXPECT_GE(offset_of(trace, bad.issue), text.find(bad.event));
    EXPECT_LE(offset_of(trace, bad.issue), text.find(good2));
    EXPECT_EQ(count_of(trace, ImportIssue::kTruncatedFile), 0u);
  }
}

TEST(ReadDamagedTextTest, CommasBetweenEventsMayBeMissingOrDoubled) {
  const std::string event = R"({"ph":"X","name":"a","ts":1,"dur":1})";
  for (const std::string& text : {event + event, event + ",," + event, event + "," + event + ",",
                                  "," + event + "," + event}) {
    const Trace trace = read_text("{\"traceEvents\":[" + text + "]}");
    EXPECT_EQ(trace.slices().size(), 2u) << text;
    EXPECT_EQ(count_of(trace, ImportIssue::kSyntax), 1u) << text;
    EXPECT_EQ(count_of(trace, ImportIssue::kEventLost), 0u) << text;
  }
}

TEST(ReadDamagedTextTest, ACutFileGivesItsCompleteEvents) {
  const std::string event = R"({"ph":"X","name":"a","ts":1,"dur":1})";
  const Trace trace =
      read_text("{\"traceEvents\":[" + event + "," + event + R"(,{"ph":"X","name":"b)");
  EXPECT_EQ(trace.slices().size(), 2u);
  EXPECT_EQ(count_of(trace, ImportIssue::kTruncatedFile), 1u);
  EXPECT_EQ(count_of(trace, ImportIssue::kEventLost), 1u);
  EXPECT_EQ(offset_of(trace, ImportIssue::kEventLost), 16 + 2 * (event.size() + 1));
  EXPECT_EQ(count_of(read_text("[" + event + "," + event), ImportIssue::kTruncatedFile),
            0u);  // allowed for bare arrays
}

TEST(ReadDamagedTextTest, MetadataThatCannotBeReadDoesNotHideTheEvents) {
  const Trace trace = read_text(
      R"({"a": 1, "bad": {{{{, "traceEvents": [{"ph":"X","name":"a","ts":1,"dur":1}], "c": 3})");
  EXPECT_EQ(trace.slices().size(), 1u);
  EXPECT_EQ(count_of(trace, ImportIssue::kMetadataLost), 1u);
  EXPECT_EQ(trace.metadata_json("c"), "3");
}

TEST(ReadDamagedTextTest, AColonTooManyDoesNotHideTheEvents) {
  const Trace trace =
      read_text(R"({"traceEvents"::[{"ph":"X","name":"a","ts":1,"dur":1}], "c":: 3})");
  EXPECT_EQ(trace.slices().size(), 1u);
  EXPECT_EQ(count_of(trace, ImportIssue::kSyntax), 2u);
  EXPECT_EQ(trace.metadata_json("c"), "3");
}

// Written next to the real list, it would be read as the events.
TEST(ReadDamagedTextTest, TraceEventsThatAreNoListAreNotKept) {
  const Trace trace =
      read_text(R"({"traceEvents":5,"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1}]})");
  EXPECT_EQ(trace.slices().size(), 1u);
  EXPECT_EQ(count_of(trace, ImportIssue::kMetadataLost), 1u);
  EXPECT_FALSE(trace.metadata_json("traceEvents"));
}

// One damaged time must not make an event that never ended last for decades.
TEST(ReadDamagedTextTest, AnOpenEventWithoutAPossibleEndHasNoLength) {
  const Trace trace =
      read_text(R"({"traceEvents":[{"ph":"b","cat":"c","id":1,"name":"open","ts":1},)"
                R"({"ph":"X","name":"long","ts":1700000000000000,"dur":1700000000000000}]})");
  ASSERT_EQ(trace.slices().size(), 2u);
  EXPECT_EQ(trace.dur_ns(SliceId{0}), 0);
  EXPECT_EQ(trace.dur_ns(SliceId{1}), 0);
  EXPECT_EQ(count_of(trace, ImportIssue::kBadTime), 2u);
}

TEST(ReadDamagedTextTest, ByteOrderMarkLineEndsAndBytesBehindTheTrace) {
  const Trace trace = read_text(
      "\xef\xbb\xbf{\r\n\"traceEvents\": "
      "[\r\n{\"ph\":\"X\",\r\n\"name\":\"a\",\"ts\":1,\"dur\":1}\r\n]\r\n}\r\nxyz");
  EXPECT_EQ(trace.slices().size(), 1u);
  EXPECT_EQ(count_of(trace, ImportIssue::kTrailingBytes), 1u);
}

TEST(ReadDamagedTextTest, DocumentsBehindTheFirstAreCountedWithTheirPlace) {
  const std::string one = R"({"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1}],"x":"]}\""})";
  const Trace two = read_text(one + "\n" + one);
  EXPECT_EQ(two.slices().size(), 1u);
  EXPECT_EQ(count_of(two, ImportIssue::kSecondDocument), 1u);
  EXPECT_EQ(offset_of(two, ImportIssue::kSecondDocument), one.size() + 1);
  EXPECT_EQ(count_of(two, ImportIssue::kTrailingBytes), 0u);
  EXPECT_TRUE(two.import_stats().lost_anything());
  // Over many windows of text, an array among them, and one that is cut.
  const Trace four =
      read_text(one + one + std::string(1 << 20, ' ') + R"([{"a":"}"}])" + one.substr(9));
  EXPECT_EQ(count_of(four, ImportIssue::kSecondDocument), 3u);
  EXPECT_EQ(offset_of(four, ImportIssue::kSecondDocument), one.size());
  EXPECT_EQ(count_of(read_text(one), ImportIssue::kSecondDocument), 0u);
}

TEST(ReadDamagedTextTest, WhatIsNoTraceIsNamed) {
  EXPECT_THAT(error_of_text(""), HasSubstr("an empty file"));
  EXPECT_THAT(error_of_text("  \n "), HasSubstr("nothing but blanks"));
  EXPECT_THAT(error_of_text("{}"), HasSubstr("without traceEvents (no keys)"));
  EXPECT_THAT(error_of_text(R"({"a":1,"b":2})"), HasSubstr("its keys: a, b"));
  EXPECT_THAT(error_of_text(R"({"schema":"1.0","nodes":[]})"), HasSubstr("execution trace"));
  EXPECT_THAT(error_of_text(R"({"traceEvents":{}})"),
              HasSubstr("traceEvents that is not an array"));
  EXPECT_THAT(error_of_text("[1,2,3]"), HasSubstr("array without a single event"));
  EXPECT_THAT(error_of_text("<!DOCTYPE html><html>"), HasSubstr("an HTML page"));
  EXPECT_THAT(error_of_text("hello world\nsecond line"),
              HasSubstr("text that is not JSON: \"hello world\""));
  EXPECT_THAT(error_of_text(std::string("SQLite format 3\0abc", 19)), HasSubstr("SQLite"));
  EXPECT_THAT(error_of_text("PK\x03\x04 something"), HasSubstr("zip archive"));
  EXPECT_THAT(error_of_text(std::string("\x0a\x10\x08\x01\x02\x03", 6)), HasSubstr("protobuf"));
  EXPECT_THAT(error_of_text(std::string("\x00\x01\x02\x03", 4)),
              HasSubstr("binary data (first bytes 00 01 02 03)"));
  EXPECT_THAT(error_of_text("{\"schemaVersion\": 1, \"devicePr"), HasSubstr("the text ends early"));
}

TEST(ReadDamagedTextTest, AnEventOverTheLimitIsLostAlone) {
  ReadOptions options;
  options.max_event_bytes = 300 * 1024;
  const std::string good = R"({"ph":"X","name":"a","ts":1,"dur":1})";
  const std::string huge =
      R"({"ph":"X","ts":1,"dur":1,"name":")" + std::string(2 << 20, 'x') + "\"}";
  const Trace trace =
      read_text("{\"traceEvents\":[" + good + "," + huge + "," + good + "]}", options);
  EXPECT_EQ(trace.slices().size(), 2u);
  EXPECT_EQ(count_of(trace, ImportIssue::kEventLost), 1u);
  EXPECT_LT(trace.memory_bytes(), 1u << 20);
}

TEST(ReadDamagedTextTest, AListOfRecordsIsNoTrace) {
  const auto trace = read_trace_bytes(R"([{"id":1,"user":"x"},{"id":2,"user":"y"}])");
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("objects that are no events"), std::string::npos)
      << trace.error().message;
  EXPECT_TRUE(
      read_trace_bytes(R"([{"id":1},{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}])"));
}

}  // namespace
}  // namespace lanescope::format
