// Traces of other writers, drawn with their fields, and those of Perfetto's own tests.
#include "lanescope/format/perfetto/read_pftrace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <string>
#include <vector>

#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/perfetto/fields.h"
#include "lanescope/format/perfetto/write_pftrace.h"
#include "lanescope/testing/real_traces.h"
#include "lanescope/testing/sketch.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

using codec::WireWriter;
using ::testing::HasSubstr;

// A message, field by field.
class Message {
 public:
  Message& integer(std::uint32_t number, std::int64_t value) {
    WireWriter(text_).signed_integer(number, value);
    return *this;
  }
  Message& real(std::uint32_t number, double value) {
    WireWriter(text_).real(number, value);
    return *this;
  }
  Message& fixed(std::uint32_t number, std::uint64_t value) {
    WireWriter(text_).fixed64(number, value);
    return *this;
  }
  Message& text(std::uint32_t number, std::string_view value) {
    WireWriter(text_).bytes(number, value);
    return *this;
  }
  Message& message(std::uint32_t number, const Message& value) { return text(number, value.text_); }
  const std::string& bytes() const { return text_; }

 private:
  std::string text_;
};

Message packet(std::int64_t ns, std::int64_t sequence = 1) {
  return Message().integer(pftrace::kTimestamp, ns).integer(pftrace::kSequenceId, sequence);
}
Message event(pftrace::EventType type, std::int64_t uuid, std::string_view name = {}) {
  Message message;
  message.integer(pftrace::kType, type).integer(pftrace::kTrackUuid, uuid);
  if (!name.empty()) message.text(pftrace::kName, name).text(pftrace::kCategories, "cat");
  return message;
}
Message thread(std::int64_t uuid, std::int64_t pid, std::int64_t tid, std::string_view name) {
  return Message()
      .integer(pftrace::kUuid, uuid)
      .message(pftrace::kTrackThread, Message().integer(1, pid).integer(2, tid).text(5, name));
}
std::string trace_of(const std::vector<Message>& packets) {
  Message trace;
  for (const Message& each : packets) trace.message(pftrace::kPacket, each);
  return trace.bytes();
}
Trace read(const std::string& bytes) {
  auto trace = read_trace_bytes(bytes);
  EXPECT_TRUE(trace.has_value()) << trace.error().message;
  return trace ? std::move(*trace) : Trace();
}
std::string text_of(const std::vector<Message>& packets) {
  return testing::trace_text(read(trace_of(packets)));
}

TEST(ReadPftraceTest, BeginsAndEndsPairByTrackWhateverTheirOrderInTheFile) {
  const std::string text =
      text_of({packet(40).message(pftrace::kTrackEvent, event(pftrace::kSliceEnd, 1)),
               packet(10).message(pftrace::kTrackEvent, event(pftrace::kSliceBegin, 1, "outer")),
               packet(30).message(pftrace::kTrackEvent, event(pftrace::kSliceEnd, 1)),
               packet(20).message(pftrace::kTrackEvent, event(pftrace::kSliceBegin, 1, "inner")),
               packet(0).message(pftrace::kTrackDescriptor, thread(1, 5, 6, "worker"))});
  EXPECT_THAT(text,
              HasSubstr("slices of thread 5/6\n  10+30 'outer' 'cat'\n  20+10 'inner' 'cat'"));
  EXPECT_THAT(text, HasSubstr("label 5/6 'worker'"));
}

TEST(ReadPftraceTest, InternedTextsAndDefaultsCountUntilTheSequenceIsCleared) {
  const auto interned = [](std::uint32_t list, std::string_view text) {
    return Message().message(list, Message().integer(1, 7).text(2, text));
  };
  const auto named = [](pftrace::EventType type) {
    return Message().integer(pftrace::kType, type).integer(pftrace::kNameIid, 7);
  };
  const std::string text = text_of(
      {packet(0).message(pftrace::kTrackDescriptor, thread(1, 5, 6, "a")),
       packet(0)
           .message(pftrace::kInternedData, interned(pftrace::kEventNames, "first"))
           .message(pftrace::kPacketDefaults,
                    Message().message(pftrace::kDefaultEvent,
                                      Message().integer(pftrace::kTrackUuid, 1))),
       packet(1).message(pftrace::kTrackEvent, named(pftrace::kInstant)),
       packet(2, 2).message(pftrace::kTrackEvent, named(pftrace::kInstant)),  // knows none of it
       packet(3)
           .integer(pftrace::kSequenceFlags, 1)
           .message(pftrace::kInternedData, interned(pftrace::kEventNames, "second"))
           .message(pftrace::kTrackEvent, named(pftrace::kInstant))});
  EXPECT_THAT(text, HasSubstr("instant thread 5/6 1 t 'first' -"));
  EXPECT_THAT(text, HasSubstr("instant async 0/0 '' 2 t '' -"));
  EXPECT_THAT(text, HasSubstr("instant async 0/0 '' 3 t 'second' -"));
}

// A list that lanescope wrote is marked. What is marked and is no list stays a text, and so does a number that is given again.
TEST(ReadPftraceTest, OnlyMarkedTextsOfListsAreLists) {
  const auto text = [](std::int64_t iid, std::string_view content, bool is_marked) {
    Message message;
    message.integer(pftrace::kIid, iid).text(pftrace::kText, content);
    if (is_marked) message.integer(pftrace::kOwnField, 1);
    return message;
  };
  const auto interned = [](const std::vector<Message>& texts) {
    Message message;
    for (const Message& each : texts) message.message(pftrace::kAnnotationTexts, each);
    return message;
  };
  const auto argument = [](std::string_view name, std::int64_t iid) {
    return Message().text(pftrace::kAnnotationName, name).integer(pftrace::kStringIid, iid);
  };
  const Message nested = Message()
                             .text(pftrace::kAnnotationName, "in")
                             .message(pftrace::kArray, Message().integer(pftrace::kStringIid, 1))
                             .message(pftrace::kArray, Message().integer(pftrace::kStringIid, 2));
  const std::string found = text_of(
      {packet(0).message(pftrace::kTrackDescriptor, thread(1, 5, 6, "a")),
       packet(1)
           .message(pftrace::kInternedData,
                    interned({text(1, "[1]", true), text(2, "[1]", false), text(3, "[1", true),
                              text(4, "null", true), text(5, "[2]", true), text(5, "[2]", false)}))
           .message(pftrace::kTrackEvent, event(pftrace::kInstant, 1, "i")
                                              .message(pftrace::kAnnotations, argument("a", 1))
                                              .message(pftrace::kAnnotations, argument("b", 2))
                                              .message(pftrace::kAnnotations, argument("c", 3))
                                              .message(pftrace::kAnnotations, argument("d", 4))
                                              .message(pftrace::kAnnotations, argument("e", 5))
                                              .message(pftrace::kAnnotations, nested))});
  // Types as in ArgType: 7 a string, 8 JSON.
  EXPECT_THAT(found, HasSubstr("a=8:'[1]' b=7:'[1]' c=7:'[1' d=7:'null' e=7:'[2]' "
                               "in=8:'[[1], \"[1]\"]'\n"));
}

TEST(ReadPftraceTest, ClocksOfASequenceCountOnAndHaveAUnit) {
  const auto clock = [](std::int64_t id, std::int64_t time, bool counts_on = false,
                        std::int64_t unit = 0) {
    Message message;
    message.integer(1, id).integer(2, time);
    if (counts_on) message.integer(3, 1);
    if (unit) message.integer(4, unit);
    return message;
  };
  const auto timed = [](std::int64_t clock_id, std::int64_t time) {
    return packet(time)
        .integer(pftrace::kTimestampClock, clock_id)
        .message(pftrace::kTrackEvent, event(pftrace::kInstant, 1, "i"));
  };
  const std::string text = text_of(
      {packet(0).message(pftrace::kClockSnapshot, Message()
                                                      .message(1, clock(6, 1'000'000))
                                                      .message(1, clock(1, 1'700'000'001'000'000))
                                                      .message(1, clock(3, 400'000))
                                                      .message(1, clock(64, 50, true, 1000))),
       packet(0).message(pftrace::kTrackDescriptor, thread(1, 5, 6, "a")), timed(64, 2),
       timed(64, 3), timed(3, 500'000), timed(65, 1)});
  EXPECT_THAT(text, HasSubstr("base 1700000000000000"));
  EXPECT_THAT(text, HasSubstr("thread 5/6 1002000 "));  // 1 ms and 2 us
  EXPECT_THAT(text, HasSubstr("thread 5/6 1005000 "));
  EXPECT_THAT(text, HasSubstr("thread 5/6 1100000 "));  // 100 us after the snapshot
}

TEST(ReadPftraceTest, CountersMayCountOnAndHaveAUnit) {
  const auto value = [](std::int64_t number) {
    return Message()
        .integer(pftrace::kType, pftrace::kCounter)
        .integer(pftrace::kTrackUuid, 2)
        .integer(pftrace::kCounterValue, number);
  };
  const std::string text =
      text_of({packet(0).message(
                   pftrace::kTrackDescriptor,
                   Message()
                       .integer(pftrace::kUuid, 2)
                       .text(pftrace::kTrackName, "bytes")
                       .message(pftrace::kTrackCounter, Message().integer(4, 1000).integer(5, 1))),
               packet(1).message(pftrace::kTrackEvent, value(3)),
               packet(2).message(pftrace::kTrackEvent, value(-1))});
  const Trace trace = read(trace_of(
      {packet(1).message(pftrace::kTrackEvent, value(3).real(pftrace::kDoubleValue, 0.5))}));
  ASSERT_EQ(trace.counters().size(), 1u);
  EXPECT_EQ(trace.counters().value[0], 0.5);
  EXPECT_EQ(trace.text(trace.track(trace.counters().track[0]).name), "counter 2");
  const Trace no_number = read(trace_of({packet(1).message(
      pftrace::kTrackEvent, value(3).real(pftrace::kDoubleValue, std::nan("")))}));
  EXPECT_EQ(no_number.counters().size(), 0u);
  EXPECT_EQ(no_number.import_stats()[ImportIssue::kFieldLost].count, 1u);
  EXPECT_THAT(text, HasSubstr("counter 0/0 'bytes' '' 1 " +
                              std::to_string(std::bit_cast<std::uint64_t>(3000.0))));
  EXPECT_THAT(text, HasSubstr("counter 0/0 'bytes' '' 2 " +
                              std::to_string(std::bit_cast<std::uint64_t>(2000.0))));
}

TEST(ReadPftraceTest, PackedPacketsAreRead) {
  const std::string inside =
      trace_of({packet(0).message(pftrace::kTrackDescriptor, thread(1, 5, 6, "a")),
                packet(7).message(pftrace::kTrackEvent, event(pftrace::kInstant, 1, "i"))});
  std::string packed(compressBound(inside.size()), '\0');
  uLongf size = packed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                     reinterpret_cast<const Bytef*>(inside.data()), inside.size()),
            Z_OK);
  packed.resize(size);
  EXPECT_THAT(text_of({Message().text(pftrace::kCompressedPackets, packed)}),
              HasSubstr("instant thread 5/6 7 t 'i'"));
  const Trace damaged = read(trace_of(
      {packet(0), Message().text(pftrace::kCompressedPackets, packed.substr(0, size - 5))}));
  EXPECT_EQ(damaged.import_stats()[ImportIssue::kEventLost].count, 1u);
}

TEST(ReadPftraceTest, PacketsOfOtherKindsAreCountedByName) {
  const Trace trace =
      read(trace_of({packet(0).text(1, "x"), packet(0).text(1, "x"), packet(1).text(777, "x")}));
  EXPECT_EQ(trace.metadata_json("unreadPackets"), "{\"ftrace_events\": 2, \"field 777\": 1}");
  EXPECT_EQ(trace.import_stats()[ImportIssue::kUnknownPhase].count, 3u);
}

TEST(ReadPftraceTest, AnnotationsKeepTheirTypesAndNestedOnesAreJson) {
  const auto annotation = [](std::string_view name) {
    return Message().text(pftrace::kAnnotationName, name);
  };
  Message instant = event(pftrace::kInstant, 1, "i");
  instant.message(pftrace::kAnnotations, annotation("b").integer(pftrace::kBool, 1))
      .message(pftrace::kAnnotations, annotation("i").integer(pftrace::kInt, -3))
      .message(pftrace::kAnnotations, annotation("t").text(pftrace::kString, "text"))
      .message(pftrace::kAnnotations,
               annotation("d")
                   .message(pftrace::kDict, annotation("k").integer(pftrace::kInt, 1))
                   .message(pftrace::kDict,
                            annotation("l")
                                .message(pftrace::kArray, Message().real(pftrace::kDouble, 1.5))
                                .message(pftrace::kArray, Message().text(pftrace::kString, "\""))))
      .message(pftrace::kAnnotations, annotation("n"))
      .message(pftrace::kAnnotations, annotation("bad").text(pftrace::kJson, "{"));
  EXPECT_THAT(
      text_of({packet(5).message(pftrace::kTrackEvent, instant)}),
      HasSubstr(
          R"( b=2:0 i=3:4294967293 t=7:'text' d=8:'{"k": 1, "l": [1.5, "\""]}' n=0:0 bad=7:'{')"));
}

TEST(ReadPftraceTest, ComputeWorkOfAGpuIsAKernelOnAStream) {
  const auto specification = [](std::int64_t iid, std::string_view name) {
    return Message().integer(1, iid).text(2, name).integer(4, 2);
  };
  const std::string text = text_of(
      {packet(0).message(pftrace::kInternedData,
                         Message()
                             .message(pftrace::kGpuSpecifications, specification(1, "queue"))
                             .message(pftrace::kGpuSpecifications, specification(2, "Kernel"))),
       packet(100).message(
           pftrace::kGpuRenderStage,
           Message()
               .integer(pftrace::kDuration, 50)
               .integer(pftrace::kQueueIid, 1)
               .integer(pftrace::kStageIid, 2)
               .text(pftrace::kStageName, "vectorAdd")
               .message(pftrace::kLaunch,
                        Message()
                            .message(1, Message().integer(1, 256))
                            .message(2, Message().integer(1, 128).integer(2, 2))))});
  EXPECT_THAT(text,
              HasSubstr("slices of stream 0/1\n  100+50 'vectorAdd' 'kernel' grid=8:'[256, 1, 1]' "
                        "block=8:'[128, 2, 1]'"));
}

TEST(ReadPftraceTest, EventsOfOldChromeHaveTheirThreadAndTimeOnTheSequence) {
  const auto legacy = [](char phase, std::int64_t delta_us) {
    return Message()
        .integer(pftrace::kDeltaUs, delta_us)
        .text(pftrace::kName, "n")
        .message(pftrace::kLegacyEvent, Message().integer(2, phase).integer(3, 4).integer(11, 77));
  };
  const Message sequence = Message().integer(pftrace::kSequenceId, 1);
  const auto with = [&](const Message& content) {
    return Message(sequence).message(pftrace::kTrackEvent, content);
  };
  const std::string text = text_of(
      {packet(0).message(pftrace::kThreadDescriptor,
                         Message().integer(1, 5).integer(2, 6).integer(6, 1000)),
       with(legacy('X', 10)), with(legacy('b', 10)), with(legacy('e', 10)), with(legacy('?', 0))});
  EXPECT_THAT(text, HasSubstr("slices of thread 5/6\n  1010000+4000 'n'"));
  EXPECT_THAT(text, HasSubstr("slices of async 5/77 ''\n  1020000+10000 'n'"));
}

// Every prefix of a trace is read or refused, and says what was lost.
TEST(ReadPftraceTest, ATraceThatIsCutIsReadUpToTheCut) {
  const Trace whole =
      std::move(
          testing::Sketch().op("a", 0, 10).kernel("k", 5, 10, {.correlation = 3}).memory(3, 5))
          .trace();
  const std::string bytes = pftrace_bytes(whole);
  for (std::size_t cut = 40; cut < bytes.size(); ++cut) {
    const auto trace = read_trace_bytes(std::string_view(bytes).substr(0, cut));
    ASSERT_TRUE(trace.has_value()) << cut << trace.error().message;
    EXPECT_LE(trace->slices().size(), 2u);
  }
}

// What Python's protobuf finds in them: packets by kind, and the names in the text forms.
TEST(ReadPftraceTest, ReadsTheTracesOfPerfettosTests) {
  const auto folder = testing::shared_traces() / "public";
  if (!std::filesystem::exists(folder / "perfetto_nested_tracks.pftrace"))
    GTEST_SKIP() << "needs the collection of real traces; the drawn ones above test the same";
  const auto open = [&](const char* name) {
    auto trace = read_trace(folder / name);
    EXPECT_TRUE(trace.has_value()) << name << trace.error().message;
    return trace ? std::move(*trace) : Trace();
  };
  const Trace nested = open("perfetto_nested_tracks.pftrace");
  EXPECT_EQ(nested.slices().size(), 1364u);
  EXPECT_EQ(nested.flows().size(), 1360u);
  EXPECT_FALSE(nested.import_stats().lost_anything());
  const std::string counters = testing::trace_text(open("perfetto_track_event_counters.pftrace"));
  EXPECT_THAT(counters, HasSubstr("slices of thread 5/1\n  1000+100 'event1_on_t1' 'cat'"));
  EXPECT_THAT(counters, HasSubstr("counter 0/0 'MySizeCounter' '' 3100 " +
                                  std::to_string(std::bit_cast<std::uint64_t>(2048.0))));
  // 1000 at the begin, and 10 more at the end, in units of 1000 ns.
  EXPECT_THAT(counters,
              HasSubstr("1100 " + std::to_string(std::bit_cast<std::uint64_t>(1010000.0))));
  const Trace launch = open("perfetto_gpu_compute_launch.pftrace");
  ASSERT_EQ(launch.slices().size(), 1u);
  EXPECT_EQ(launch.name(SliceId{0}), "vectorAdd");
  EXPECT_EQ(launch.kind(SliceId{0}), CategoryKind::kKernel);
  EXPECT_EQ(open("perfetto_gpu_render_stages_interned_spec.pftrace").slices().size(), 4u);
  EXPECT_EQ(open("perfetto_flow_events_proto_v2.pftrace").flows().size(), 3u);
  EXPECT_THAT(testing::trace_text(open("perfetto_track_event_merged_debug_annotations.pftrace")),
              HasSubstr(R"(debug4=8:'{"key1": 10, "key2": [20, 21]}')"));
}

}  // namespace
}  // namespace lanescope::format
