#include "lanescope/format/kineto_json/write_kineto_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include "lanescope/codec/json_mend.h"
#include "lanescope/format/kineto_json/chrome_events.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/sanitizers.h"
#include "lanescope/testing/sketch.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

Trace read_json(const std::string& text) {
  auto trace = read_trace_bytes(text);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().message) << text;
  return trace ? *std::move(trace) : Trace();
}
// Writes, checks that the text is strict JSON, reads it back.
Trace round_trip(const Trace& trace) {
  const std::string text = kineto_json_text(trace);
  EXPECT_TRUE(codec::is_strict_json(text.substr(0, text.size() - 1))) << text;
  Trace again = read_json(text);
  EXPECT_EQ(testing::trace_text(trace), testing::trace_text(again)) << text;
  EXPECT_EQ(kineto_json_text(again),
            text);  // once clean, it stays byte for byte
  return again;
}

TEST(WriteKinetoJsonTest, TheTextIsWhatViewersExpect) {
  testing::Sketch sketch;
  sketch.op("aten::mm", 1500, 2001, {.external_id = 3})
      .kernel("gemm \"x\"", 4000, 10, {.correlation = 9});
  sketch.metadata("schemaVersion", "1").metadata("traceName", "\"t.json\"");
  sketch.builder().set_base_time_ns(77);
  const Scalar pid{false, 100}, device{false, 0}, stream{false, 7};
  const CategoryId ac2g = sketch.builder().category("ac2g");
  Flow arrow;
  arrow.set_id({false, 9});
  arrow.category = ac2g;
  arrow.name = sketch.builder().intern("ac2g");
  arrow.from_track = sketch.builder().thread_track(pid, pid);
  arrow.from_ns = 1600;
  arrow.to_track = sketch.builder().stream_track(device, stream);
  arrow.to_ns = 4000;
  arrow.binds_enclosing = true;
  sketch.builder().add_flow(arrow);
  EXPECT_EQ(
      kineto_json_text(sketch.trace()),
      "{\n  \"schemaVersion\": 1,\n  \"baseTimeNanoseconds\": 77,\n  "
      "\"traceEvents\":[\n"
      R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":100,"tid":100,"ts":1.500,"dur":2.001,"args":{"External id":3}},)"
      "\n"
      R"({"ph":"s","cat":"ac2g","name":"ac2g","id":9,"pid":100,"tid":100,"ts":1.600},)"
      "\n"
      R"({"ph":"X","cat":"kernel","name":"gemm \"x\"","pid":0,"tid":7,"ts":4.000,"dur":0.010,"args":{"device":0,"stream":7,"correlation":9}},)"
      "\n"
      R"({"ph":"f","cat":"ac2g","name":"ac2g","id":9,"pid":0,"tid":7,"ts":4.000,"bp":"e"})"
      "\n"
      "],\n  \"traceName\": \"t.json\"\n}\n");
}

TEST(WriteKinetoJsonTest, WrittenTextDoesNotDependOnTheOrderInWhichTracksWereMet) {
  // Tracks 2, 1 and the counters b, a are first met in an order that is not the order of their
  // times; all share time 5.
  const std::string head =
      R"({"traceEvents":[{"ph":"M","name":"thread_name","pid":9,"tid":2,"args":{"name":"two"}},)"
      R"({"ph":"M","name":"thread_name","pid":9,"tid":1,"args":{"name":"one"}},)";
  round_trip(read_json(
      head +
      R"({"ph":"X","name":"x","pid":9,"tid":2,"ts":5,"dur":1},{"ph":"X","name":"y","pid":9,"tid":1,"ts":5,"dur":2},)"
      R"({"ph":"X","name":"z","pid":9,"tid":1,"ts":1,"dur":1},)"
      R"({"ph":"C","name":"b","pid":9,"ts":5,"args":{"v":1}},{"ph":"C","name":"a","pid":9,"ts":5,"args":{"v":2}},)"
      R"({"ph":"C","name":"a","pid":9,"ts":1,"args":{"v":3}},)"
      R"({"ph":"s","name":"q","cat":"q","id":2,"pid":9,"tid":2,"ts":5},{"ph":"f","name":"q","cat":"q","id":2,"pid":9,"tid":1,"ts":5},)"
      R"({"ph":"s","name":"p","cat":"p","id":1,"pid":9,"tid":1,"ts":5},{"ph":"f","name":"p","cat":"p","id":1,"pid":9,"tid":2,"ts":5}]})"));
}

// The thread's slice is met before the arrow, and the stream's after it; in the written file, which
// is in order of time, the stream comes first.
TEST(WriteKinetoJsonTest, AnArrowToAThreadAndAStreamOfOnePidAndTidStaysWhereItWas) {
  const Trace again = round_trip(read_json(
      R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"op","pid":0,"tid":7,"ts":9,"dur":1},)"
      R"({"ph":"s","id":1,"cat":"ac2g","name":"ac2g","pid":5,"tid":5,"ts":1},)"
      R"({"ph":"f","id":1,"cat":"ac2g","name":"ac2g","pid":0,"tid":7,"ts":2,"bp":"e"},)"
      R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":2,"dur":3}]})"));
  ASSERT_EQ(again.flows().size(), 1u);
  EXPECT_EQ(again.track(again.flows()[0].to_track).kind, TrackKind::kStream);
}

// A process can have pid 1 in its container, and a device the number 1.
TEST(WriteKinetoJsonTest, AStreamsLabelCountsWhereAThreadHasItsPidAndTid) {
  TraceBuilder builder;
  const Scalar pid{false, 1}, tid{false, 7};
  const TrackId thread = builder.thread_track(pid, tid), stream = builder.stream_track(pid, tid);
  builder.add_slice(thread, builder.category("cpu_op"), builder.intern("op"), 0, 9, kNone<ArgsId>);
  builder.add_slice(stream, builder.category("kernel"), builder.intern("k"), 5, 9, kNone<ArgsId>);
  builder.set_track_name(thread, builder.intern("thread 7"));
  builder.set_track_sort_index(thread, 70);
  builder.set_track_name(stream, builder.intern("stream 7"));
  const auto trace = std::move(builder).finish();
  ASSERT_TRUE(trace);
  const std::string text = kineto_json_text(*trace);
  EXPECT_EQ(text.find("thread 7"), std::string::npos) << text;
  round_trip(*trace);
}

// One arrow goes back in time from where and when another, which takes no time, ends.
TEST(WriteKinetoJsonTest, AnArrowThatTakesNoTimeIsNoStepOfAnother) {
  const Trace trace = read_json(
      R"({"traceEvents":[{"ph":"f","cat":"ac2g","name":"n","id":3,"pid":0,"tid":0,"ts":40},)"
      R"({"ph":"f","cat":"ac2g","name":"n","id":3,"pid":0,"tid":0,"ts":7},)"
      R"({"ph":"s","cat":"ac2g","name":"n","id":3,"pid":0,"tid":0,"ts":40},)"
      R"({"ph":"s","cat":"ac2g","name":"n","id":3,"pid":0,"tid":1,"ts":40}]})");
  EXPECT_EQ(trace.flows().size(), 2u);
  round_trip(trace);
}

// Looking each key up among all others takes an hour at this size: beyond the limit of any test.
TEST(WriteKinetoJsonTest, AMillionTopLevelEntriesAreWrittenInOnePass) {
  const int kEntries = testing::rounds(1'000'000);
  testing::Sketch sketch;
  for (int i = 0; i < kEntries; ++i) sketch.metadata("key " + std::to_string(i), std::to_string(i));
  sketch.metadata("key 5", "\"the last one counts\"");
  const Trace again = read_json(kineto_json_text(sketch.trace()));
  EXPECT_EQ(again.metadata().size(), static_cast<std::size_t>(kEntries));
  EXPECT_EQ(again.metadata_json("key 5"), "\"the last one counts\"");
  EXPECT_EQ(again.metadata_json("key 99999"), "99999");
}

TEST(WriteKinetoJsonTest, AnEmptyTraceIsAnEmptyTrace) {
  const Trace again = round_trip(Trace());
  EXPECT_EQ(again.slices().size(), 0u);
}

// Kineto's order, which torch's own test and other programs count on from the end.
TEST(WriteKinetoJsonTest, TheRecordingsOwnSpansAndMarksComeLast) {
  const Trace trace = read_json(R"json({"traceEvents":[
{"ph":"M","name":"process_sort_index","pid":"Spans","tid":0,"args":{"sort_index":5}},
{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":1,"dur":9},
{"ph":"i","s":"g","name":"Iteration Start: PyTorch Profiler","pid":"Traces","tid":"Trace PyTorch Profiler","ts":1},
{"ph":"i","s":"t","name":"note","pid":1,"tid":1,"ts":3},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":2,"dur":1},
{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":10}]
})json");
  const std::string text = kineto_json_text(trace);
  std::size_t at = 0;
  for (const char* name : {"aten::mm", "note", "PyTorch Profiler (0)", "process_sort_index",
                           "Iteration Start: PyTorch Profiler", "Record Window End"}) {
    const std::size_t found = text.find(fmt::format("\"name\":\"{}\"", name), at);
    ASSERT_NE(found, std::string::npos) << name << " does not come after the others in " << text;
    at = found;
  }
  round_trip(trace);
}

TEST(WriteKinetoJsonTest, ArgumentsComeBackAsTheyWere) {
  TraceBuilder builder;
  ArgsBuilder& args = builder.args();
  args.begin();
  const auto key = [&](const char* text) { return builder.intern(text); };
  args.add_int(key("External id"), ArgKey::kExternalId, 7);
  args.add_int(key("min"), ArgKey::kCount, std::numeric_limits<std::int64_t>::min());
  args.add_uint(key("max"), ArgKey::kCount, std::numeric_limits<std::uint64_t>::max());
  for (const double value :
       {0.1, -0.0, 5.0, 1e22, 5e-324, 1.7976931348623157e308,
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
    args.add_double(key(fmt::format("d{}", value).c_str()), ArgKey::kCount, value);
  args.add(key("n"), ArgKey::kCount, ArgType::kNull);
  args.add(key("t"), ArgKey::kCount, ArgType::kTrue);
  args.add_string(key("s\"\n"), ArgKey::kCount, key("\x01 \" \\ \xe2\x82\xac /"));
  args.add_json(key("j"), ArgKey::kCount, key("[1, {\"a\": []}]"));
  args.add(key("event:finished"), ArgKey::kCount, ArgType::kFalse);
  const Scalar pid{false, -5}, tid{true, 0, key("thread \"a\"")};
  builder.add_slice(builder.thread_track(pid, tid), builder.category("cpu_op"), key(""), -5, 1,
                    args.end());
  auto trace = std::move(builder).finish();
  ASSERT_TRUE(trace);
  round_trip(*trace);
}

TEST(WriteKinetoJsonTest, WhatJsonCannotHoldIsWrittenAsTheNearestThing) {
  TraceBuilder builder;
  builder.args().begin();
  builder.args().add_double(builder.intern("nan"), ArgKey::kCount, std::nan(""));
  builder.args().add_json(builder.intern("broken"), ArgKey::kCount, builder.intern("[1,"));
  const ArgsId args = builder.args().end();
  builder.add_slice(builder.thread_track({}, {}), builder.no_category(),
                    builder.intern("bad \xff utf8"), 0, 1, args);
  builder.add_metadata("user", "no json");
  auto trace = std::move(builder).finish();
  ASSERT_TRUE(trace);
  const std::string text = kineto_json_text(*trace);
  EXPECT_TRUE(codec::is_strict_json(text.substr(0, text.size() - 1))) << text;
  EXPECT_NE(
      text.find(
          R"("name":"bad )"
          "\xef\xbf\xbd"
          R"( utf8","pid":0,"tid":0,"ts":0.000,"dur":0.001,"args":{"nan":null,"broken":"[1,"})"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("user": "no json")"), std::string::npos) << text;
}

TEST(WriteKinetoJsonTest, OneStartMayHaveManyEndsAndChainsStayChains) {
  const Trace trace = read_json(R"([
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":9},
    {"ph":"s","cat":"g","name":"g","id":"x","pid":1,"tid":1,"ts":1},{"ph":"f","cat":"g","name":"g","id":"x","pid":1,"tid":2,"ts":2,"bp":"e"},
    {"ph":"f","cat":"g","name":"g","id":"x","pid":1,"tid":3,"ts":3},
    {"ph":"s","cat":"c","name":"c","id":1,"pid":1,"tid":1,"ts":1},{"ph":"t","cat":"c","name":"c","id":1,"pid":1,"tid":2,"ts":2},
    {"ph":"t","cat":"c","name":"c","id":1,"pid":1,"tid":3,"ts":3},{"ph":"f","cat":"c","name":"c","id":1,"pid":1,"tid":4,"ts":4},
    {"ph":"s","cat":"c","name":"c","id":1,"pid":1,"tid":1,"ts":5},{"ph":"f","cat":"c","name":"c","id":1,"pid":1,"tid":4,"ts":6}])");
  ASSERT_EQ(trace.flows().size(), 6u);
  round_trip(trace);
  const std::string text = kineto_json_text(trace);
  const auto times = [&](std::string_view what) {
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(times("\"ph\":\"s\""), 3u);
  EXPECT_EQ(times("\"ph\":\"t\""), 2u);
  EXPECT_EQ(times("\"ph\":\"f\""), 4u);
}

TEST(WriteKinetoJsonTest, AsyncSlicesCountersAndLabelsComeBack) {
  round_trip(read_json(R"([
    {"ph":"b","cat":"net","name":"outer","id":1,"pid":1,"ts":0},{"ph":"b","cat":"net","name":"inner","id":1,"pid":1,"ts":2},
    {"ph":"n","cat":"net","name":"hop","id":1,"pid":1,"ts":3,"args":{"x":1}},
    {"ph":"e","cat":"net","name":"inner","id":1,"pid":1,"ts":5},{"ph":"e","cat":"net","name":"outer","id":1,"pid":1,"ts":5},
    {"ph":"b","cat":"net","name":"next","id":1,"pid":1,"ts":5},{"ph":"e","cat":"net","name":"next","id":1,"pid":1,"ts":6},
    {"ph":"b","cat":"net","name":"zero","id":1,"pid":1,"ts":6},{"ph":"e","cat":"net","name":"zero","id":1,"pid":1,"ts":6},
    {"ph":"C","name":"mem","id":3,"pid":1,"ts":1,"args":{"used":5}},{"ph":"C","name":"mem","id":3,"pid":1,"ts":2,"args":{"used":6.5}},
    {"ph":"M","name":"thread_sort_index","pid":1,"tid":4,"args":{"sort_index":-3}},
    {"ph":"M","name":"process_labels","pid":1,"args":{"labels":"CPU"}},
    {"ph":"i","name":"now","pid":1,"tid":4,"ts":3,"s":"p","args":{"y":2}}])"));
}

// Found by the fuzzer.
TEST(WriteKinetoJsonTest, AnEmptyCategoryOfAnAsyncSliceIsNone) {
  const Trace trace = read_json(R"([
    {"ph":"b","cat":"","name":"a","id":1,"pid":1,"ts":0},{"ph":"e","cat":"","name":"a","id":1,"pid":1,"ts":2},
    {"ph":"b","name":"b","id":2,"pid":1,"ts":3},{"ph":"e","name":"b","id":2,"pid":1,"ts":4}])");
  EXPECT_EQ(trace.slices().category[0], trace.slices().category[1]);
  round_trip(trace);
}

// Found by the fuzzer.
TEST(WriteKinetoJsonTest, ArgumentsNamedLikeFieldsOfTheEventStayArguments) {
  round_trip(read_json(
      R"([{"ph":"X","name":"a","ts":1,"dur":1,"args":{"event:al id":3,"x":1,"event:y":2}},
    {"ph":"X","name":"b","ts":5,"dur":1,"args":{"event:ts":3,"event:args":{"z":1}}}, {"ph":"X","name":"c","ts":9,"dur":1,"args":[1],"tts":4}])"));
}

TEST(WriteKinetoJsonTest, RandomTracesComeBack) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    testing::Sketch sketch;
    ChromeEvents chrome(sketch.builder());
    const auto number = [&](int limit) {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit));
    };
    for (int i = 0; i < 120; ++i) {
      testing::Fields fields;
      fields.tid = 100 + number(3);
      fields.stream = 7 + number(2);
      fields.external_id = number(9);
      if (number(2) == 0) fields.correlation = number(40) * 100000000000;
      if (number(4) == 0) fields.input_dims = fmt::format("[[{}]]", number(9));
      const std::string name = fmt::format("op {}", number(6));
      const std::int64_t start = number(3000) - 500, dur = number(200);
      switch (number(5)) {
        case 0:
          sketch.op(name, start, dur, fields);
          break;
        case 1:
          sketch.runtime(name, start, dur, fields);
          break;
        case 2:
          sketch.kernel(name, start, dur, fields);
          break;
        case 3:
          sketch.memory(start, number(100) - 50);
          break;
        default: {
          TraceBuilder& builder = sketch.builder();
          const char phase = "stf"[number(3)];
          const Scalar pid{false, 100}, tid{false, 100 + number(3)};
          chrome.add_flow(phase, chrome.point_track(pid, tid), builder.category("ac2g"),
                          builder.intern("ac2g"), {false, number(4)}, start,
                          phase == 'f' && number(2) == 0);
        }
      }
    }
    SCOPED_TRACE(seed);
    chrome.finish();
    round_trip(round_trip(sketch.trace()));
  }
}

TEST(WriteKinetoJsonTest, TheNameDecidesThePackingAndThePackedFileReadsBack) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(::testing::TempDir()) / ("lanescope_write_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  testing::Sketch sketch;
  for (int i = 0; i < 20000; ++i) sketch.op("aten::add", i * 100, 50, {.external_id = i});
  const Trace trace = sketch.trace();
  std::uint64_t plain_bytes = 0;
  for (const char* name : {"t.json", "t.json.gz", "t.json.zst"}) {
    const auto stats = write_kineto_json(trace, folder / name);
    ASSERT_TRUE(stats) << stats.error().message;
    EXPECT_EQ(stats->events, 20000u);
    EXPECT_EQ(stats->file_bytes, fs::file_size(folder / name));
    if (plain_bytes == 0)
      plain_bytes = stats->file_bytes;
    else
      EXPECT_LT(stats->file_bytes, plain_bytes / 4);
    EXPECT_EQ(stats->text_bytes, plain_bytes);
    const auto again = read_trace(folder / name);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->slices().size(), 20000u);
    EXPECT_EQ(testing::trace_text(trace), testing::trace_text(*again)) << name;
  }
  const auto refused = write_kineto_json(trace, folder / "none" / "t.json");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kIo);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace lanescope::format
