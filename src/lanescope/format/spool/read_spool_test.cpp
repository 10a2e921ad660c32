#include "lanescope/format/spool/read_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "lanescope/codec/op_details.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/spool_reading_test.h"
#include "lanescope/testing/sanitizers.h"
#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format {
namespace {

using spool::RangeRecord;
using spool::Record;
using spool::RecordKind;
using ::testing::HasSubstr;

using lanescope::testing::kDay;
using lanescope::testing::SpoolSketch;

TEST(ReadSpoolTest, TicksBecomeNanosecondsSinceTheBase) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  spool.records(0, 1, {spool.range("op", 3000, 4500)});
  const Trace trace = read_recording(spool.bytes());
  EXPECT_EQ(trace.base_time_ns(), 0);  // one day after 1970 is before Kineto's first step
  const SliceId op = find_slice(trace, "op");
  EXPECT_EQ(trace.start_ns(op), kDay + (3000 - 1000) * 2);
  EXPECT_EQ(trace.dur_ns(op), (4500 - 3000) * 2);
  EXPECT_EQ(trace.window_start_ns(), kDay + (2000 - 1000) * 2);
  EXPECT_EQ(trace.window_end_ns(), kDay + (9000 - 1000) * 2);
  EXPECT_EQ(trace.kind(op), CategoryKind::kCpuOp);
  EXPECT_EQ(trace.track(op).tid.number, 101);
  EXPECT_EQ(trace.text(trace.track(op).name), "thread 101 (worker)");
  EXPECT_EQ(trace.text(trace.processes()[0].name), "program");
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

TEST(ReadSpoolTest, ArgumentsAreThoseOfKineto) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  char buffer[256];
  codec::OpDetailsWriter details(buffer, sizeof buffer);
  const std::int64_t sizes[] = {4, 8}, strides[] = {8, 1};
  details.tensor("float", sizes, strides);
  details.integer(3);
  RangeRecord op = spool.range("aten::mm", 3000, 4000);
  op.flags = spool::kHasSequence | spool::kHasForwardThread;
  op.sequence_number = 7;
  op.detail = spool.text(details.bytes());
  const Record annotation = spool.range("mine", 2500, 4500, spool::kUserScope);
  spool.records(0, 1, {annotation, op});
  const Trace trace = read_recording(spool.bytes());
  const ArgsView args = trace.slice_args(find_slice(trace, "aten::mm"));
  EXPECT_EQ(args.integer(ArgKey::kExternalId), 2);
  EXPECT_EQ(args.integer(ArgKey::kRecordFunctionId), 0);
  EXPECT_EQ(args.integer(ArgKey::kSequenceNumber), 7);
  EXPECT_EQ(args.integer(ArgKey::kFwdThreadId), 0);
  EXPECT_EQ(args.integer(ArgKey::kEvIdx), 1);
  EXPECT_EQ(trace.text(*args.text(ArgKey::kInputDims)), "[[4, 8], []]");
  EXPECT_EQ(trace.text(*args.text(ArgKey::kInputType)), "[\"float\", \"Scalar\"]");
  EXPECT_EQ(trace.text(*args.text(ArgKey::kInputStrides)), "[[8, 1], []]");
  EXPECT_EQ(trace.text(*args.text(ArgKey::kConcreteInputs)), "[\"\", \"3\"]");
  EXPECT_EQ(trace.kind(find_slice(trace, "mine")), CategoryKind::kUserAnnotation);
  EXPECT_FALSE(trace.slice_args(find_slice(trace, "mine")).has(ArgKey::kSequenceNumber));
}

TEST(ReadSpoolTest, EndsWrittenElsewhereCloseTheirRanges) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  spool.thread(102, 2);
  RangeRecord async = spool.range("async", 3100, 0);
  async.handle = 55;
  RangeRecord async_again = spool.range("async again", 3600, 0);  // the handle was used again
  async_again.handle = 55;
  const spool::RangeEndRecord end_of_slot{.end_tsc = 3500, .place = {.slot = 0, .sequence = 1}};
  const spool::EndByHandleRecord end_by_handle{.end_tsc = 3300, .handle = 55};
  const spool::EndByHandleRecord second_end{.end_tsc = 3700, .handle = 55};
  spool.records(0, 1, {spool.range("rolled", 3000, 0), async, async_again});
  spool.records(0, 2, {end_of_slot});
  spool.records(1, 1, {second_end, end_by_handle});
  const Trace trace = read_recording(spool.bytes());
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "rolled")), 1000);
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "async")), 400);
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "async again")), 200);
  EXPECT_EQ(issue_count(trace, ImportIssue::kOpenRange), 0u);
}

TEST(ReadSpoolTest, OpenRangesEndWithTheirWindowAndAreCounted) {
  SpoolSketch spool;
  spool.window(2000, 4000).window(6000, 8000, 1);
  spool.thread(101, 1);
  spool.records(0, 1,
                {spool.range("open", 3000, 0), spool.range("too long", 3000, 7000),
                 spool.range("between", 5000, 5500), spool.range("second", 6500, 7000)});
  const Trace trace = read_recording(spool.bytes());
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "open")), 2000);
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "too long")), 2000);
  EXPECT_EQ(find_slice(trace, "between"), kNone<SliceId>);
  EXPECT_EQ(issue_count(trace, ImportIssue::kOpenRange), 2u);
  const Trace second = read_recording(spool.bytes(), {.session = 1, .cycle = 1, .metadata = {}});
  EXPECT_EQ(find_slice(second, "open"), kNone<SliceId>);
  EXPECT_EQ(second.dur_ns(find_slice(second, "second")), 1000);
  EXPECT_EQ(second.slices().size(), 2u);  // and the window's span
  EXPECT_EQ(
      read_recording(spool.bytes(), {.session = 9, .cycle = {}, .metadata = {}}).slices().size(),
      0u);
}

TEST(ReadSpoolTest, AWindowThatAKilledProcessLeftOpenLastsToTheLastRecord) {
  SpoolSketch spool;
  spool.window(2000, 0);
  spool.thread(101, 1);
  spool.records(0, 1, {spool.range("a", 600'000, 601'000), spool.range("b", 602'000, 0)}, false);
  const Trace trace = read_recording(spool.bytes());
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "a")), 2000);
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "b")), 0);
  EXPECT_EQ(issue_count(trace, ImportIssue::kOpenChunk), 1u);
  EXPECT_EQ(issue_count(trace, ImportIssue::kOpenRange), 1u);
}

TEST(ReadSpoolTest, MemoryEventsKeepAllTheirNumbers) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  spool::MemoryRecord memory{.begin_tsc = 3000,
                             .total_allocated = 5'000'000'000,
                             .device_type = 1,
                             .device_index = 3,
                             .bytes = -512,
                             .address = 0xfedcba9876543210};
  memory.set_total_reserved(7'000'000'000);
  spool.records(0, 1, {memory});
  const Trace trace = read_recording(spool.bytes());
  ASSERT_GE(trace.instants().size(), 1u);
  std::size_t at = 0;
  while (trace.text(trace.instants().name[at]) != "[memory]") ++at;
  const ArgsView args = trace.args(trace.instants().args[at]);
  EXPECT_EQ(trace.instants().time_ns[at], kDay + 4000);
  EXPECT_EQ(args.integer(ArgKey::kMemoryBytes), -512);
  EXPECT_EQ(args.integer(ArgKey::kTotalAllocated), 5'000'000'000);
  EXPECT_EQ(args.integer(ArgKey::kTotalReserved), 7'000'000'000);
  EXPECT_EQ(args.integer(ArgKey::kDeviceId), 3);
  EXPECT_EQ(args.integer(ArgKey::kDeviceType), 1);
  EXPECT_EQ(args.bits(*args.find(ArgKey::kAddr)), 0xfedcba9876543210u);
}

TEST(ReadSpoolTest, ABackwardOpIsJoinedToTheLastForwardOpOfItsSequenceNumber) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  spool.thread(102, 2);
  const auto with_sequence = [](RangeRecord range, std::uint32_t forward_thread) {
    range.flags = spool::kHasSequence | spool::kHasForwardThread;
    range.sequence_number = 4;
    range.forward_thread = forward_thread;
    return range;
  };
  spool.records(0, 1,
                {with_sequence(spool.range("aten::matmul", 3000, 3900), 0),
                 with_sequence(spool.range("aten::mm", 3100, 3800), 0)});
  spool.records(
      1, 1,
      {with_sequence(spool.range("autograd::engine::evaluate_function: MmBackward0", 5000, 5900, 1),
                     1),
       with_sequence(spool.range("MmBackward0", 5100, 5800, 1), 1)});
  const Trace trace = read_recording(spool.bytes());
  ASSERT_EQ(trace.flows().size(), 1u);
  EXPECT_EQ(trace.flows()[0].from_ns, trace.start_ns(find_slice(trace, "aten::mm")));
  EXPECT_EQ(trace.flows()[0].to_ns, trace.start_ns(find_slice(trace, "MmBackward0")));
}

TEST(ReadSpoolTest, RecordFunctionIdsAreOfTheNextRange) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  const auto numbers = [](const RangeRecord& range, std::uint64_t id) {
    return spool::CallNumbersRecord{.begin_tsc = range.begin_tsc,
                                    .record_function_id = id,
                                    .name = range.name,
                                    .flags = spool::kHasRecordFunctionId};
  };
  const RangeRecord wrapper =
      spool.range("autograd::engine::evaluate_function: MmBackward0", 5000, 5900, 0);
  RangeRecord node = spool.range("MmBackward0", 5100, 5800, spool::kBackwardScope);
  node.flags = spool::kHasSequence | spool::kHasForwardThread;
  node.sequence_number = 4;
  node.forward_thread = 1;
  const Record plain = spool.range("aten::mm", 5200, 5300);
  spool.records(0, 1, {numbers(wrapper, 71), wrapper, numbers(node, 72), node, plain});
  const Trace trace = read_recording(spool.bytes());
  const auto id_of = [&](const char* name) {
    return trace.slice_args(find_slice(trace, name)).integer(ArgKey::kRecordFunctionId);
  };
  EXPECT_EQ(id_of("autograd::engine::evaluate_function: MmBackward0"), 71);
  EXPECT_EQ(id_of("MmBackward0"), 72);
  EXPECT_EQ(id_of("aten::mm"), 0);
  // The wrapper still gets the numbers of the node inside it.
  EXPECT_EQ(trace.slice_args(find_slice(trace, "autograd::engine::evaluate_function: MmBackward0"))
                .integer(ArgKey::kSequenceNumber),
            4);
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

TEST(ReadSpoolTest, DropsAreCounted) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1, 41);
  spool.thread(102, 2, 1);
  spool.records(0, 1, {spool.range("a", 3000, 3001)});
  EXPECT_EQ(issue_count(read_recording(spool.bytes()), ImportIssue::kDroppedRecords), 42u);
}

TEST(ReadSpoolTest, AChunkThatChangedIsCountedAndItsRecordsAreStillRead) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  spool.records(0, 1, {spool.range("a", 3000, 3001), spool.range("b", 3010, 3020)});
  std::string bytes = spool.bytes();
  bytes[spool::kHeaderBytes + spool::kChunkHeaderBytes + 8] ^= 4;  // a's end_tsc: 3001 ^ 4 = 3005
  const Trace trace = read_recording(bytes);
  EXPECT_EQ(issue_count(trace, ImportIssue::kChecksumMismatch), 1u);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kChecksumMismatch].first_offset, spool::kHeaderBytes);
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "a")), 10);
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "b")), 20);
}

TEST(ReadSpoolTest, WhatIsNoSpoolIsRefusedInOneLine) {
  for (const std::string& bytes :
       {std::string(), std::string("{\"traceEvents\": []}"), std::string(5000, 'x')})
    EXPECT_EQ(read_spool_bytes(bytes).error().code, Errc::kCorruptInput);
  std::string newer = SpoolSketch().bytes();
  newer[8] = 9;
  EXPECT_EQ(read_spool_bytes(newer).error().code, Errc::kUnsupported);
  EXPECT_THAT(read_spool_bytes(newer).error().message, HasSubstr("layout 9"));
}

std::string busy_spool(bool ring = false) {
  SpoolSketch spool;
  spool.window(2000, 90'000, 0, 1, ring ? 100'000 : 0).window(100'000, 0, 1, 2, ring ? 50'000 : 0);
  for (std::uint32_t slot = 0; ring && slot < 100; ++slot)
    spool.kept(slot % 4, 1 + slot % 2, slot, spool.range("kept", 2000 + slot, 0));
  for (std::uint32_t thread = 0; thread < 3; ++thread) {
    spool.thread(200 + thread, thread + 1);
    std::vector<Record> records;
    for (std::uint64_t i = 0; i < 200; ++i) {
      RangeRecord range =
          spool.range("op" + std::to_string(i), 3000 + i * 700, i % 7 == 0 ? 0 : 3300 + i * 700);
      range.flags = spool::kHasSequence;
      range.sequence_number = static_cast<std::int64_t>(i / 2);
      range.forward_thread = i % 2;
      range.handle = i % 5;
      records.push_back(range);
      range.kind = static_cast<RecordKind>(i % 8);
      records.push_back(range);
    }
    spool.records(thread, 1, records, thread != 2);
  }
  return spool.bytes();
}

TEST(ReadSpoolTest, AFileCutAnywhereIsReadAsFarAsItGoes) {
  const std::string bytes = busy_spool();
  std::size_t most = 0;
  for (std::size_t size = 0; size <= bytes.size(); size += testing::kSanitizers ? 4093 : 1021) {
    const auto trace = read_spool_bytes(std::string_view(bytes).substr(0, size));
    if (size < 8) {
      EXPECT_FALSE(trace);
      continue;
    }
    ASSERT_TRUE(trace) << size << ": " << trace.error().message;
    if (size > spool::kHeaderBytes && (size - spool::kHeaderBytes) % spool::kChunkBytes != 0) {
      EXPECT_GE(issue_count(*trace, ImportIssue::kTruncatedFile), 1u) << size;
    }
    most = std::max(most, trace->slices().size());
  }
  EXPECT_GT(most, 500u);
}

TEST(ReadSpoolTest, FlippedBitsNeverCrashTheReader) {
  const std::string plain = busy_spool(), ring = busy_spool(true);
  std::mt19937 random(7);
  for (int round = 0; round < testing::rounds(3000); ++round) {
    std::string damaged = round % 2 == 0 ? plain : ring;
    const int flips = 1 + static_cast<int>(random() % 20);
    for (int i = 0; i < flips; ++i) {
      // Mostly where something is: headers and the front of each chunk.
      std::size_t at = random() % damaged.size();
      if (random() % 4 != 0) at = at / spool::kChunkBytes * spool::kChunkBytes + random() % 8192;
      if (at >= 12) damaged[at % damaged.size()] ^= static_cast<char>(1u << random() % 8);
    }
    const auto trace = read_spool_bytes(damaged);
    if (trace) {
      EXPECT_LT(trace->memory_bytes(), 64u << 20);
    }
  }
}

TEST(ReadSpoolTest, TheClockAnchorsAreInTheMetadata) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  const Trace trace = read_recording(spool.bytes());
  EXPECT_EQ(trace.metadata_json("lanescope_clock_anchors"),
            R"([{"trace_unix_ns": 86400000000000, "monotonic_ns": 5000, )"
            R"("realtime_ns": 86400000000000, "width_ns": 0}, )"
            R"({"trace_unix_ns": 86400001000000, "monotonic_ns": 1005000, )"
            R"("realtime_ns": 86400001000000, "width_ns": 0}])");
}

// A C++ program may name its ranges in any encoding; Python and JSON know UTF-8 only.
TEST(ReadSpoolTest, NamesThatAreNotUtf8AreMendedAndCounted) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  spool.metadata(
      "Stra\xdf"
      "e",
      "1");
  spool.records(0, 1,
                {spool.range("gr\xfc"
                             "n",
                             3000, 4000),
                 spool.range("gr\xc3\xbcn", 5000, 6000)});
  const Trace trace = read_recording(spool.bytes());
  EXPECT_NE(find_slice(trace, "gr\xef\xbf\xbdn"), kNone<SliceId>);
  EXPECT_NE(find_slice(trace, "gr\xc3\xbcn"), kNone<SliceId>);
  EXPECT_EQ(trace.metadata_json("Stra\xef\xbf\xbd"
                                "e"),
            "1");
  EXPECT_EQ(issue_count(trace, ImportIssue::kInvalidUtf8), 1u);
}

TEST(ReadSpoolTest, SpacesAroundMetadataAreNoPartOfIt) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.metadata("number", "\r\n\t 8 ");
  spool.metadata("list", " [1, 2]\n");
  const Trace trace = read_recording(spool.bytes());
  EXPECT_EQ(trace.metadata_json("number"), "8");
  EXPECT_EQ(trace.metadata_json("list"), "[1, 2]");
  const auto again = read_trace_bytes(kineto_json_text(trace));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->metadata_json("number"), "8");
}

TEST(ReadSpoolTest, MetadataThatIsNoJsonIsCountedAsLost) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.metadata("whole", "[1, 2]");
  spool.metadata("damaged", "[1, 2");
  const Trace trace = read_recording(spool.bytes());
  EXPECT_EQ(trace.metadata_json("whole"), "[1, 2]");
  EXPECT_EQ(trace.metadata_json("damaged"), std::nullopt);
  EXPECT_EQ(issue_count(trace, ImportIssue::kMetadataLost), 1u);
}

}  // namespace
}  // namespace lanescope::format
