#include "lanescope/format/perfetto/write_pftrace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/perfetto/fields.h"
#include "lanescope/format/perfetto/read_pftrace.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/real_traces.h"
#include "lanescope/testing/sketch.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

using testing::Sketch;
using testing::trace_text;

// What a trace says after a round trip, next to what it said.
void expect_round_trip(const Trace& trace) {
  const std::string bytes = pftrace_bytes(trace);
  EXPECT_TRUE(is_pftrace(std::string_view(bytes).substr(0, 4096)));
  const auto again = read_trace_bytes(bytes);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(trace_text(trace), trace_text(*again));
  EXPECT_FALSE(again->import_stats().lost_anything());
  EXPECT_EQ(pftrace_bytes(*again), bytes) << "written again, it is the same file";
}

Trace json(const std::string& text) {
  auto trace = read_trace_bytes(text);
  EXPECT_TRUE(trace.has_value()) << trace.error().message;
  return std::move(*trace);
}

TEST(WritePftraceTest, OverlapsZeroDurationsAndDevicesComeBack) {
  expect_round_trip(
      std::move(Sketch()
                    .op("aten::mm", 1000, 50, {.external_id = 3, .input_dims = "[[4, 4], []]"})
                    .op("aten::mm", 1000, 50)
                    .op("crosses", 1040, 60)
                    .runtime("cudaLaunchKernel", 1010, 10, {.correlation = 9})
                    .op("point", 1100, 0)
                    .kernel("gemm", 1030, 40, {.correlation = 9})
                    .kernel("late", 1060, 40, {.device = 1, .stream = 20})
                    .kernel("over", 1050, 40)
                    .memory(1005, -512))
          .trace());
}

// Kineto's own numbers, at the first, a middle and the last place. Perfetto would store an argument for each.
TEST(WritePftraceTest, ArgumentsForProgramsComeBackAtTheirPlacesAndPerfettoDoesNotGetThem) {
  const Trace trace = json(
      R"([{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":2,"ts":1,"dur":2,"args":{
        "Ev Idx":7,"External id":3,"Python id":5,"Record function id":0,"Input Dims":[[4]],"Python parent id":4}},
        {"ph":"X","cat":"python_function","name":"p","pid":1,"tid":2,"ts":1.5,"dur":1,"args":{"Python id":6}}])");
  expect_round_trip(trace);
  std::size_t shown = 0, own = 0;
  const std::string bytes = pftrace_bytes(trace);
  for (codec::WireReader packet(bytes); packet.next();)
    for (codec::WireReader field(packet.bytes()); field.next();)
      if (field.number() == pftrace::kTrackEvent || field.number() == pftrace::kOwnField)
        for (codec::WireReader part(field.bytes()); part.next();) {
          shown += field.number() == pftrace::kTrackEvent && part.number() == pftrace::kAnnotations;
          own += field.number() == pftrace::kOwnField && part.number() == pftrace::kOwnArgument;
        }
  EXPECT_EQ(shown, 2u);  // External id, Input Dims
  EXPECT_EQ(own, 5u);
}

// Of every type, with numbers at the edges of it.
TEST(WritePftraceTest, ArgumentsKeepTheirTypes) {
  expect_round_trip(json(R"([{"ph":"X","cat":"c","name":"n","pid":1,"tid":2,"ts":1,"dur":2,"args":{
    "a":null,"b":true,"c":false,"d":-5,"e":2147483648,"f":18446744073709551615,"g":0.1,"h":1e999,
    "i":"text \u00e9 \"","j":[1,{"k":[]}],"l":{},"m":"","n":-9223372036854775808,"n":"again"}}])"));
}

int count_of(std::string_view text, std::string_view bytes) {
  int count = 0;
  for (std::size_t at = bytes.find(text); at != std::string_view::npos;
       at = bytes.find(text, at + 1))
    ++count;
  return count;
}

// Perfetto makes one argument of a text, and one of each number of a list.
TEST(WritePftraceTest, AListIsWrittenOnceAsATextAndComesBackAsAList) {
  const Trace trace = json(R"([
    {"ph":"X","name":"n","pid":1,"tid":2,"ts":1,"dur":2,"args":{"a":[[64, 7], []],"b":[],"c":"[]","d":"[[64, 7], []]","e":{"f":[1]}}},
    {"ph":"X","name":"n","pid":1,"tid":2,"ts":4,"dur":2,"args":{"a":[[64, 7], []],"d":"[1,"}}])");
  expect_round_trip(trace);
  EXPECT_EQ(count_of("[[64, 7], []]", pftrace_bytes(trace)), 2) << "one list, one string";
  const auto again = read_trace_bytes(pftrace_bytes(trace));
  ASSERT_TRUE(again.has_value());
  const ArgsView args = again->args(again->slices().args[0]);
  ASSERT_EQ(args.size(), 5u);
  EXPECT_EQ(args.field(0).type, ArgType::kJson);
  EXPECT_EQ(args.field(1).type, ArgType::kJson);
  EXPECT_EQ(args.field(2).type, ArgType::kString);
  EXPECT_EQ(args.field(3).type, ArgType::kString);
  EXPECT_EQ(args.field(4).type, ArgType::kJson);
}

TEST(WritePftraceTest, PlacesThatPerfettoDoesNotHaveComeBack) {
  expect_round_trip(json(R"({"traceEvents":[
    {"ph":"X","name":"no cat","pid":"Spans","tid":"t","ts":-5.5,"dur":2},
    {"ph":"X","cat":"","name":"","pid":-1,"tid":99999999999,"ts":3,"dur":2},
    {"ph":"b","cat":"a","id":"0x1","name":"n","pid":1,"tid":1,"ts":3},
    {"ph":"e","cat":"a","id":"0x1","name":"n","pid":1,"tid":1,"ts":8},
    {"ph":"C","name":"c","pid":1,"ts":5,"args":{"v":1.5,"w":2}},
    {"ph":"i","s":"g","name":"mark","pid":1,"tid":1,"ts":1,"args":{"a":1}},
    {"ph":"i","s":"p","name":"mark","pid":1,"tid":1,"ts":1},
    {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"worker"}},
    {"ph":"M","name":"thread_sort_index","pid":1,"tid":2,"args":{"sort_index":-50000000000}},
    {"ph":"X","name":"x","pid":1,"tid":2,"ts":3,"dur":2},
    {"ph":"M","name":"process_name","pid":1,"args":{"name":"python3"}},
    {"ph":"M","name":"process_labels","pid":1,"args":{"labels":"CPU"}},
    {"ph":"M","name":"other","pid":1,"args":{"x":1}}],
    "displayTimeUnit":"ms","baseTimeNanoseconds":1700000000000000000,"own":{"a":[1]}})"));
}

TEST(WritePftraceTest, ArrowsComeBackWhereverTheirEndsAre) {
  expect_round_trip(json(R"([
    {"ph":"X","cat":"cpu_op","name":"op","pid":5,"tid":5,"ts":0,"dur":9},
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":2,"dur":3},
    {"ph":"X","cat":"kernel","name":"l","pid":0,"tid":7,"ts":6,"dur":3},
    {"ph":"s","id":1,"cat":"ac2g","name":"ac2g","pid":5,"tid":5,"ts":0},
    {"ph":"f","id":1,"cat":"ac2g","name":"ac2g","pid":0,"tid":7,"ts":2,"bp":"e"},
    {"ph":"f","id":1,"cat":"ac2g","name":"ac2g","pid":0,"tid":7,"ts":6,"bp":"e"},
    {"ph":"s","id":2,"cat":"fwdbwd","name":"x","pid":5,"tid":5,"ts":3},
    {"ph":"f","id":2,"cat":"fwdbwd","name":"x","pid":0,"tid":7,"ts":5.5},
    {"ph":"s","id":"text","name":"x","pid":5,"tid":5,"ts":0},
    {"ph":"f","id":"text","name":"x","pid":0,"tid":7,"ts":2}])"));
}

TEST(WritePftraceTest, EventsOfAllTracksAreInOrderOfTime) {
  const Trace trace = json(R"([
    {"ph":"X","name":"op","pid":5,"tid":5,"ts":0,"dur":9},
    {"ph":"X","name":"inner","pid":5,"tid":5,"ts":3,"dur":6},
    {"ph":"X","name":"last","pid":5,"tid":5,"ts":20,"dur":0},
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":2,"dur":5},
    {"ph":"X","cat":"kernel","name":"l","pid":0,"tid":7,"ts":4,"dur":5},
    {"ph":"i","s":"t","name":"late","pid":1,"tid":1,"ts":21},
    {"ph":"i","s":"t","name":"mark","pid":1,"tid":1,"ts":5},
    {"ph":"C","name":"c","pid":1,"ts":30,"args":{"v":1.5}},
    {"ph":"C","name":"c","pid":1,"ts":1,"args":{"v":2}}])");
  expect_round_trip(trace);
  std::vector<std::uint64_t> times;
  const std::string bytes = pftrace_bytes(trace);
  for (codec::WireReader packet(bytes); packet.next();) {
    std::uint64_t time = 0;
    bool is_event = false;
    for (codec::WireReader field(packet.bytes()); field.next();) {
      if (field.number() == pftrace::kTimestamp) time = field.integer();
      is_event |= field.number() == pftrace::kTrackEvent;
    }
    if (is_event) times.push_back(time);
  }
  EXPECT_THAT(times, ::testing::ElementsAre(0, 1000, 2000, 3000, 4000, 5000, 7000, 9000, 9000, 9000,
                                            20000, 20000, 21000, 30000));
}

// Perfetto counts an error for a field of an event that it does not know, and adds an argument to events on no thread where a thread
// is described in their sequence.
TEST(WritePftraceTest, EventsHaveOnlyFieldsThatPerfettoKnowsAndASequenceOfTheirOwn) {
  const std::string bytes = pftrace_bytes(json(R"([
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":2,"dur":3,"args":{"device":0,"stream":7}},
    {"ph":"i","s":"g","name":"mark","pid":1,"tid":1,"ts":1,"args":{"a":null}}])"));
  EXPECT_EQ(bytes.find("null"), std::string::npos) << "as JSON, it ends Perfetto 52";
  int events = 0, tracks = 0;
  for (codec::WireReader packet(bytes); packet.next();) {
    std::uint64_t sequence = 0;
    bool is_event = false, is_track = false;
    for (codec::WireReader field(packet.bytes()); field.next();) {
      if (field.number() == pftrace::kSequenceId) sequence = field.integer();
      is_track |= field.number() == pftrace::kTrackDescriptor;
      if (field.number() != pftrace::kTrackEvent) continue;
      is_event = true;
      for (codec::WireReader event(field.bytes()); event.next();)
        EXPECT_LT(event.number(), 1000u);  // where extensions begin
    }
    EXPECT_EQ(sequence, is_track ? 2u : 1u);
    events += is_event;
    tracks += is_track;
  }
  EXPECT_EQ(events, 3);  // a begin, an end and an instant
  EXPECT_EQ(tracks, 4);  // process 1 with its thread, device 0 with its stream
}

TEST(WritePftraceTest, AnEmptyTraceComesBack) { expect_round_trip(json(R"({"traceEvents":[]})")); }

TEST(WritePftraceTest, TheTracesOfTheRepositoryComeBackAndAreSmallerThanTheirJson) {
  const auto paths = testing::json_traces(testing::shipped_traces());
  for (std::size_t i = 0; i < paths.size(); i += 6) {  // all of them take a minute
    const auto& path = paths[i];
    SCOPED_TRACE(path.string());
    auto trace = read_trace(path);
    if (!trace) continue;  // some are damaged on purpose
    const std::string bytes = pftrace_bytes(*trace);
    const auto again = read_trace_bytes(bytes);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_TRUE(trace_text(*trace) == trace_text(*again));
    EXPECT_TRUE(trace->slices().size() <= 100 || bytes.size() < kineto_json_text(*trace).size());
  }
}

}  // namespace
}  // namespace lanescope::format
