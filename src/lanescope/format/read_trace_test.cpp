#include "lanescope/format/read_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

#include "lanescope/format/read_text_test.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

using ::testing::HasSubstr;

bool has_no_issues(const Trace& trace) {
  for (std::size_t i = 0; i < kImportIssueCount; ++i)
    if (count_of(trace, static_cast<ImportIssue>(i)) > 0) return false;
  return true;
}
// The text of an argument as stored, with its type.
std::string arg(const Trace& trace, std::uint32_t slice, std::string_view key) {
  const ArgsView args = trace.slice_args(SliceId{slice});
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ArgField& field = args.field(i);
    if (trace.text(field.key) != key) continue;
    const std::uint64_t bits = args.bits(field);
    switch (field.type) {
      case ArgType::kNull:
        return "null";
      case ArgType::kFalse:
        return "false";
      case ArgType::kTrue:
        return "true";
      case ArgType::kInt32:
        return "int32 " + std::to_string(static_cast<std::int32_t>(bits));
      case ArgType::kInt64:
        return "int64 " + std::to_string(static_cast<std::int64_t>(bits));
      case ArgType::kUint64:
        return "uint64 " + std::to_string(bits);
      case ArgType::kDouble:
        return "double " + std::to_string(std::bit_cast<double>(bits));
      case ArgType::kString:
        return "string " + std::string(trace.text(StringId{static_cast<std::uint32_t>(bits)}));
      case ArgType::kJson:
        return "json " + std::string(trace.text(StringId{static_cast<std::uint32_t>(bits)}));
    }
  }
  return "absent";
}
std::string one_slice(std::string_view args) {
  return "[{\"ph\":\"X\",\"name\":\"a\",\"cat\":\"cpu_op\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":2,"
         "\"args\":" +
         std::string(args) + "}]";
}

// Nobody parses them before somebody asks, and equal ones are one text.
TEST(ReadTraceTest, ListsAndObjectsOfArgumentsStayTheTextOfTheFile) {
  const Trace trace = read_text(R"([
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"Input Dims":[[2 ,3],  {"a":1.50}],"o":{ "k" : [] }}},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":3,"dur":1,"args":{"Input Dims":[[2 ,3],  {"a":1.50}],"o":{ "k" : [] }}}])");
  ASSERT_EQ(trace.slices().size(), 2u);
  std::vector<std::uint64_t> texts;
  for (const SliceId slice : {SliceId{0}, SliceId{1}}) {
    const ArgsView args = trace.slice_args(slice);
    ASSERT_EQ(args.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(args.field(i).type, ArgType::kJson);
      texts.push_back(args.bits(args.field(i)));
      EXPECT_EQ(trace.text(StringId{static_cast<std::uint32_t>(texts.back())}),
                i == 0 ? R"([[2 ,3],  {"a":1.50}])" : R"({ "k" : [] })");
    }
  }
  EXPECT_EQ(texts[0], texts[2]);
  EXPECT_EQ(texts[1], texts[3]);
}

// What torch.autograd.profiler exported before Kineto: no categories, names as pids, {} at the end.
TEST(ReadTraceTest, OldExportsOfAutogradNameTheirRowsByProcess) {
  const Trace trace = read_text(R"([
    {"name": "aten::mm", "ph": "X", "ts": 10, "dur": 50, "tid": 1, "pid": "CPU functions", "args": {}},
    {"name": "sgemm", "ph": "X", "ts": 20, "dur": 30, "tid": 0, "pid": "CUDA functions", "args": {}},
    {"name": "other", "ph": "X", "ts": 20, "dur": 30, "tid": 0, "pid": "GPU", "args": {}}, {}])");
  ASSERT_EQ(trace.slices().size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::string_view name = trace.name(SliceId{i});
    EXPECT_EQ(trace.kind(SliceId{i}), name == "aten::mm" ? CategoryKind::kCpuOp
                                      : name == "sgemm"  ? CategoryKind::kKernel
                                                         : CategoryKind::kNone);
  }
  EXPECT_TRUE(has_no_issues(trace));
}

TEST(ReadTraceTest, TimesAreExactNanosecondsFromTheDecimalText) {
  const Trace trace = read_text(R"([
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":4365001498111.380,"dur":161.169},
    {"ph":"X","name":"b","pid":1,"tid":2,"ts":-0.001,"dur":1},
    {"ph":"X","name":"c","pid":1,"tid":3,"ts":"1736405443861785.63","dur":"0.5"},
    {"ph":"X","name":"d","pid":1,"tid":4,"ts":1.5e3,"dur":1E-3},
    {"ph":"X","name":"e","pid":1,"tid":5,"ts":1.23456,"dur":0}])");
  ASSERT_EQ(trace.slices().size(), 5u);
  EXPECT_EQ(trace.slices().start_ns,
            (std::vector<std::int64_t>{4365001498111380, -1, 1736405443861785630, 1500000, 1234}));
  std::vector<std::int64_t> durations;
  for (std::size_t i = 0; i < 5; ++i) durations.push_back(trace.slices().dur_ns[i]);
  EXPECT_EQ(durations, (std::vector<std::int64_t>{161169, 1000, 500, 1, 0}));
  EXPECT_EQ(count_of(trace, ImportIssue::kSubNanosecond), 1u);
  EXPECT_EQ(count_of(trace, ImportIssue::kWrongType), 1u);  // the quoted times of one event
}

TEST(ReadTraceTest, TimesThatCannotBeAreCountedAndTheirNeighboursStay) {
  const Trace trace = read_text(R"([
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":1e300,"dur":1},
    {"ph":"X","name":"beyond 73 years","pid":1,"tid":1,"ts":2305843009213694.0,"dur":1},
    {"ph":"X","name":"b","pid":1,"tid":1,"dur":1},
    {"ph":"X","name":"c","pid":1,"tid":1,"ts":null,"dur":1},
    {"ph":"X","name":"d","pid":1,"tid":1,"ts":5,"dur":-1},
    {"ph":"X","name":"e","pid":1,"tid":1,"ts":9}])");
  ASSERT_EQ(trace.slices().size(), 2u);
  EXPECT_EQ(trace.name(SliceId{0}), "d");
  EXPECT_EQ(trace.dur_ns(SliceId{0}), 0);
  EXPECT_EQ(count_of(trace, ImportIssue::kBadTime), 2u);
  EXPECT_EQ(count_of(trace, ImportIssue::kMissingField), 2u);
  EXPECT_EQ(count_of(trace, ImportIssue::kNegativeDuration), 1u);
  EXPECT_EQ(count_of(trace, ImportIssue::kMissingDuration), 1u);
  EXPECT_EQ(trace.import_stats().events, 6u);
}

TEST(ReadTraceTest, ArgumentsKeepTypeOrderAndText) {
  const Trace trace = read_text(one_slice(
      R"({"i": -7, "big": 5000000000, "huge": 18446744073709551615, "d": 0.5, "e": 1e400, "z": -0,
    "over": 123456789012345678901234567890, "s": "a\u00e9\n\"", "t": true, "f": false, "n": null, "list": [1, [2.0, "x"]], "obj": {"k": {}}})"));
  ASSERT_EQ(trace.slices().size(), 1u);
  EXPECT_TRUE(has_no_issues(trace));
  EXPECT_EQ(arg(trace, 0, "i"), "int32 -7");
  EXPECT_EQ(arg(trace, 0, "big"), "int64 5000000000");
  EXPECT_EQ(arg(trace, 0, "huge"), "uint64 18446744073709551615");
  EXPECT_EQ(arg(trace, 0, "d"), "double 0.500000");
  EXPECT_EQ(arg(trace, 0, "e"), "double inf");
  EXPECT_EQ(arg(trace, 0, "z"), "double -0.000000");
  EXPECT_EQ(arg(trace, 0, "over"), "double 123456789012345677877719597056.000000");
  EXPECT_EQ(arg(trace, 0, "s"), "string a\xc3\xa9\n\"");
  EXPECT_EQ(arg(trace, 0, "t"), "true");
  EXPECT_EQ(arg(trace, 0, "f"), "false");
  EXPECT_EQ(arg(trace, 0, "n"), "null");
  EXPECT_EQ(arg(trace, 0, "list"), R"(json [1, [2.0, "x"]])");
  EXPECT_EQ(arg(trace, 0, "obj"), R"(json {"k": {}})");
  EXPECT_EQ(trace.text(trace.slice_args(SliceId{0}).field(0).key), "i");
  EXPECT_EQ(trace.text(trace.slice_args(SliceId{0}).field(12).key), "obj");
}

TEST(ReadTraceTest, KnownArgumentsAreFoundByKey) {
  const Trace trace = read_text(
      one_slice(R"({"External id": 7, "correlation": 9, "grid": [1,2,3], "Sequence number": 3})"));
  const ArgsView args = trace.slice_args(SliceId{0});
  EXPECT_EQ(args.integer(ArgKey::kExternalId), 7);
  EXPECT_EQ(args.integer(ArgKey::kCorrelation), 9);
  EXPECT_EQ(args.integer(ArgKey::kSequenceNumber), 3);
  EXPECT_EQ(trace.text(*args.text(ArgKey::kGrid)), "[1,2,3]");
  EXPECT_FALSE(args.has(ArgKey::kStream));
}

TEST(ReadTraceTest, FieldsWithoutAColumnAreKeptAsArguments) {
  const Trace trace =
      read_text(R"([{"ph":"X","name":"a","ts":1,"dur":1,"tts":5,"args":{"x":1},"cname":"good"}])");
  EXPECT_EQ(arg(trace, 0, "x"), "int32 1");
  EXPECT_EQ(arg(trace, 0, "event:tts"), "int32 5");
  EXPECT_EQ(arg(trace, 0, "event:cname"), "string good");
}

TEST(ReadTraceTest, FieldsMayComeInAnyOrderAndKeysMayBeEscaped) {
  const Trace trace = read_text(
      R"([{"args":{"x":1},"dur":3,"ts":2,"tid":"t","pid":4,"name":"a","cat":"kernel","\u0070h":"X"}])");
  ASSERT_EQ(trace.slices().size(), 1u);
  EXPECT_EQ(trace.kind(SliceId{0}), CategoryKind::kKernel);
  EXPECT_EQ(trace.track(SliceId{0}).kind, TrackKind::kStream);
  EXPECT_EQ(arg(trace, 0, "x"), "int32 1");
}

TEST(ReadTraceTest, AMissingCategoryIsNotAnEmptyOne) {
  const Trace trace = read_text(
      R"([{"ph":"X","name":"a","ts":1,"dur":1},{"ph":"X","name":"b","cat":"","ts":2,"dur":1}])");
  ASSERT_EQ(trace.slices().size(), 2u);
  EXPECT_EQ(trace.categories()[raw(trace.slices().category[0])].text, kNone<StringId>);
  EXPECT_EQ(trace.text(trace.categories()[raw(trace.slices().category[1])].text), "");
  EXPECT_NE(trace.categories()[raw(trace.slices().category[1])].text, kNone<StringId>);
}

TEST(ReadTraceTest, EveryPhaseGoesWhereItBelongs) {
  const Trace trace = read_text(R"({"traceEvents": [
    {"ph":"B","name":"outer","pid":1,"tid":1,"ts":0}, {"ph":"E","pid":1,"tid":1,"ts":10},
    {"ph":"i","name":"now","pid":1,"tid":1,"ts":3,"s":"g"}, {"ph":"I","name":"now","pid":1,"tid":1,"ts":4}, {"ph":"R","name":"mark","ts":5},
    {"ph":"C","name":"mem","pid":1,"ts":1,"args":{"used":5,"free":2.5}},
    {"ph":"s","cat":"ac2g","name":"l","id":1,"pid":1,"tid":1,"ts":1}, {"ph":"t","cat":"ac2g","name":"l","id":1,"pid":1,"tid":1,"ts":2},
    {"ph":"f","cat":"ac2g","name":"l","id":1,"pid":0,"tid":7,"ts":6,"bp":"e"},
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":6,"dur":1},
    {"ph":"b","cat":"net","name":"get","id":"0x1","pid":1,"ts":2}, {"ph":"n","cat":"net","name":"hop","id":"0x1","pid":1,"ts":3},
    {"ph":"e","cat":"net","name":"get","id":"0x1","pid":1,"ts":8},
    {"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}, {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}},
    {"ph":"M","name":"num_cpus","args":{"number":4}}, {"ph":"?","name":"odd","ts":1}]})");
  EXPECT_EQ(trace.import_stats().events, 17u);
  EXPECT_EQ(testing::trace_text(trace),
            "base 0\nwindow 0 10000\n"
            "event '{\"ph\":\"M\",\"name\":\"num_cpus\",\"args\":{\"number\":4}}'\n"
            "label 1/1 'main' -\n"
            "process 1 'python' - -\n"
            "slices of async 1/'0x1' 'net'\n  2000+6000 'get' 'net'\n"
            "slices of stream 0/7\n  6000+1000 'k' 'kernel'\n"
            "slices of thread 1/1\n  0+10000 'outer' -\n"
            "instant async 1/'0x1' 'net' 3000 t 'hop' 'net'\n"
            "instant thread 0/0 5000 t 'mark' -\n"
            "instant thread 1/1 3000 g 'now' -\n"
            "instant thread 1/1 4000 t 'now' -\n"
            "value counter 1/0 'mem' 'free' 1000 4612811918334230528\n"
            "value counter 1/0 'mem' 'used' 1000 4617315517961601024\n"
            "flow 'ac2g' 'l' 1 thread 1/1 1000 -> thread 1/1 2000\n"
            "flow 'ac2g' 'l' 1 thread 1/1 2000 -> stream 0/7 6000 e\n");
  EXPECT_EQ(count_of(trace, ImportIssue::kUnknownPhase), 1u);
}

TEST(ReadTraceTest, AnEventNestedTooDeepIsLostAndTheLimitIsNamed) {
  std::string text = "[";
  for (const std::size_t depth : {500, 600}) {
    text += R"({"ph":"X","name":"deep","ts":1,"dur":1,"args":{"x":)";
    text.append(depth, '[').append(depth, ']').append("}},");
  }
  text += R"({"ph":"X","name":"next","ts":2,"dur":1}])";
  const Trace trace = read_text(text);
  ASSERT_EQ(trace.slices().size(), 2u);
  EXPECT_EQ(trace.name(SliceId{0}), "deep");
  EXPECT_EQ(trace.name(SliceId{1}), "next");
  EXPECT_EQ(count_of(trace, ImportIssue::kEventLost), 1u);
  const std::string_view about = import_issue_info(ImportIssue::kEventLost).description;
  EXPECT_NE(about.find("nested more than 512 levels deep"), about.npos);
}

TEST(ReadTraceTest, AnEndWithoutCategoryEndsTheBeginOfItsThread) {
  const Trace trace = read_text(R"([
    {"ph":"B","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1}, {"ph":"E","pid":0,"tid":7,"ts":3},
    {"ph":"B","cat":"kernel","name":"m","pid":0,"tid":7,"ts":4}, {"ph":"E","name":"m","pid":0,"tid":7,"ts":6},
    {"ph":"E","pid":0,"tid":8,"ts":9}, {"ph":"B","cat":"gpu_memcpy","name":"c","pid":0,"tid":8,"ts":8},
    {"ph":"B","name":"plain","pid":1,"tid":7,"ts":1}, {"ph":"E","cat":"kernel","name":"plain","pid":1,"tid":7,"ts":2},
    {"ph":"B","cat":"cpu_op","name":"outer","pid":2,"tid":7,"ts":1}, {"ph":"B","cat":"kernel","name":"inner","pid":2,"tid":7,"ts":2},
    {"ph":"E","pid":2,"tid":7,"ts":3}, {"ph":"E","pid":2,"tid":7,"ts":5}])");
  EXPECT_EQ(testing::trace_text(trace),
            "base 0\nwindow 1000 9000\n"
            "slices of stream 0/7\n  1000+2000 'k' 'kernel'\n  4000+2000 'm' 'kernel'\n"
            "slices of stream 0/8\n  8000+1000 'c' 'gpu_memcpy'\n"
            "slices of stream 2/7\n  2000+1000 'inner' 'kernel'\n"
            "slices of thread 1/7\n  1000+1000 'plain' -\n"
            "slices of thread 2/7\n  1000+4000 'outer' 'cpu_op'\n");
  EXPECT_EQ(count_of(trace, ImportIssue::kEndWithoutBegin), 0u);
  EXPECT_EQ(count_of(trace, ImportIssue::kBeginWithoutEnd), 0u);
}

TEST(ReadTraceTest, EntriesBesideTheEventsAreKeptInAnyOrder) {
  const Trace trace = read_text(R"({"schemaVersion": 1, "deviceProperties": [ {"id": 0} ],
    "traceEvents": [{"ph":"X","name":"a","ts":1,"dur":1}], "baseTimeNanoseconds": 1790857026000000000, "traceName": "x.json"})");
  EXPECT_EQ(trace.base_time_ns(), 1790857026000000000);
  EXPECT_EQ(trace.metadata_json("deviceProperties"), R"([ {"id": 0} ])");
  EXPECT_EQ(trace.metadata_json("traceName"), R"("x.json")");
  EXPECT_TRUE(has_no_issues(trace));
}

TEST(ReadTraceTest, ABaseTimeIsKeptAsTheNumberThatItIs) {
  const std::string events = R"("traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1}]})";
  const Trace quoted = read_text(R"({"baseTimeNanoseconds": "17e3",)" + events);
  EXPECT_EQ(quoted.base_time_ns(), 17000);
  EXPECT_EQ(quoted.metadata_json("baseTimeNanoseconds"), "17000");
  const Trace damaged = read_text(R"({"baseTimeNanoseconds": "179'000",)" + events);
  EXPECT_EQ(damaged.base_time_ns(), 0);
  EXPECT_EQ(damaged.metadata_json("baseTimeNanoseconds"), std::nullopt);
  EXPECT_EQ(count_of(damaged, ImportIssue::kBadTime), 1u);
}

TEST(ReadTraceTest, MetadataEventsHaveNoTimeThatCouldBeBad) {
  const Trace trace =
      read_text(R"([{"ph":"M","name":"other","ts":18446744073709551615,"pid":1,"args":{"x":1}},)"
                R"({"ph":"X","name":"a","ts":1,"dur":1}])");
  EXPECT_EQ(trace.other_metadata_events().size(), 1u);
  EXPECT_TRUE(has_no_issues(trace));
}

TEST(ReadTraceTest, TheSizeOfTheWindowChangesNothing) {
  std::string text = "[";
  for (int i = 0; i < 500; ++i)
    text += R"({"ph":"X","cat":"cpu_op","name":"op \u00e9","pid":1,"tid":1,"ts":)" +
            std::to_string(10 * i) + R"(,"dur":9,"args":{"Input Dims":[[64, 64]],"k":"{,"}},)";
  text.back() = ']';
  const auto whole = read_trace_bytes(text);
  ASSERT_TRUE(whole);
  for (const std::uint32_t bytes : {1u, 7u, 100u, 5000u}) {
    ReadOptions options;
    options.window_bytes = bytes;
    const auto trace = read_trace_bytes(text, options);
    ASSERT_TRUE(trace) << bytes;
    EXPECT_TRUE(has_no_issues(*trace)) << bytes;
    EXPECT_EQ(trace->slices().start_ns, whole->slices().start_ns) << bytes;
    EXPECT_EQ(trace->slices().name, whole->slices().name) << bytes;
  }
}

TEST(ReadTraceTest, AnEmptyArrayOfEventsIsAnEmptyTrace) {
  for (const char* text :
       {"[]", " [ ] ", R"({"traceEvents":[]})", R"({"traceEvents":[ ], "x": 1})"}) {
    const Trace trace = read_text(text);
    EXPECT_EQ(trace.import_stats().events, 0u);
    EXPECT_TRUE(has_no_issues(trace)) << text;
  }
}

TEST(ReadTraceTest, ProgressGrowsToTheSize) {
  std::vector<std::uint64_t> seen;
  ReadOptions options;
  std::string text = "[";
  for (int i = 0; i < 40000; ++i) text += R"({"ph":"X","name":"a","ts":1,"dur":1},)";
  text += "]";
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, text.size());
    EXPECT_TRUE(seen.empty() || done >= seen.back());
    seen.push_back(done);
  };
  EXPECT_EQ(read_text(text, options).slices().size(), 40000u);
  ASSERT_GT(seen.size(), 3u);
  EXPECT_EQ(seen.back(), text.size());
}

TEST(ReadTraceTest, EventsThatStartWithAnUnknownKeyCostNoSecondLook) {
  constexpr std::uint32_t kCount = 120'000;
  std::string text = R"({"traceEvents":[)";
  for (std::uint32_t i = 0; i < kCount; ++i)
    text += R"({"zz":1,"ph":"X","name":"a","pid":1,"tid":1,"ts":)" + std::to_string(i) +
            R"(,"dur":1},)";
  text.back() = ']';
  text += '}';
  ReadOptions options;
  options.max_event_bytes =
      2
      << 20;  // a quarter of the text: no window holds all events; a look each would be 2e11 steps
  const auto trace = read_trace_bytes(text, options);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->slices().size(), kCount);
  EXPECT_EQ(trace->import_stats()[ImportIssue::kEventLost].count, 0u);
}

}  // namespace
}  // namespace lanescope::format
