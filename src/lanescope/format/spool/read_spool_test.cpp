#include "lanescope/format/spool/read_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "lanescope/codec/op_details.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/clock_anchors.h"
#include "lanescope/format/spool/tensor_identities.h"
#include "lanescope/format/spool/tick_map.h"
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

Trace read_recording(const std::string& bytes, const ReadSpoolOptions& options = {}) {
  auto trace = read_spool_bytes(bytes, options);
  EXPECT_TRUE(trace) << trace.error().message;
  return std::move(trace).value();
}
SliceId find(const Trace& trace, std::string_view name) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name) return SliceId{i};
  return kNone<SliceId>;
}
std::uint64_t issue_count(const Trace& trace, ImportIssue issue) {
  return trace.import_stats()[issue].count;
}

TEST(ReadSpoolTest, TicksBecomeNanosecondsSinceTheBase) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  spool.records(0, 1, {spool.range("op", 3000, 4500)});
  const Trace trace = read_recording(spool.bytes());
  EXPECT_EQ(trace.base_time_ns(), 0);  // one day after 1970 is before Kineto's first step
  const SliceId op = find(trace, "op");
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
  const ArgsView args = trace.slice_args(find(trace, "aten::mm"));
  EXPECT_EQ(args.integer(ArgKey::kExternalId), 2);
  EXPECT_EQ(args.integer(ArgKey::kRecordFunctionId), 0);
  EXPECT_EQ(args.integer(ArgKey::kSequenceNumber), 7);
  EXPECT_EQ(args.integer(ArgKey::kFwdThreadId), 0);
  EXPECT_EQ(args.integer(ArgKey::kEvIdx), 1);
  EXPECT_EQ(trace.text(*args.text(ArgKey::kInputDims)), "[[4, 8], []]");
  EXPECT_EQ(trace.text(*args.text(ArgKey::kInputType)), "[\"float\", \"Scalar\"]");
  EXPECT_EQ(trace.text(*args.text(ArgKey::kInputStrides)), "[[8, 1], []]");
  EXPECT_EQ(trace.text(*args.text(ArgKey::kConcreteInputs)), "[\"\", \"3\"]");
  EXPECT_EQ(trace.kind(find(trace, "mine")), CategoryKind::kUserAnnotation);
  EXPECT_FALSE(trace.slice_args(find(trace, "mine")).has(ArgKey::kSequenceNumber));
}

std::string stack_node(std::uint32_t frame, std::uint32_t caller) {
  char buffer[codec::kMaxStackNodeBytes];
  codec::OpDetailsWriter writer(buffer, sizeof buffer);
  writer.stack_node(frame, caller);
  return std::string(writer.bytes());
}

std::string call_stack(const Trace& trace, std::string_view name) {
  const auto text = trace.slice_args(find(trace, name)).text(ArgKey::kCallStack);
  return text ? std::string(trace.text(*text)) : "none";
}

TEST(ReadSpoolTest, NodesBecomeACallStackInnermostFirst) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  const std::uint32_t outer = spool.text(stack_node(spool.text("a.py(1): <module>"), 0));
  const std::uint32_t inner = spool.text(stack_node(spool.text("b.py(2): f"), outer));
  RangeRecord bare = spool.range("with stack", 3000, 3100);
  bare.detail = inner;
  RangeRecord both = spool.range("with inputs", 3200, 3300);
  char buffer[64];
  codec::OpDetailsWriter details(buffer, sizeof buffer);
  details.stack(outer);
  details.integer(5);
  both.detail = spool.text(details.bytes());
  spool.records(0, 1, {bare, both, spool.range("without", 3400, 3500)});
  const Trace trace = read_recording(spool.bytes());
  EXPECT_EQ(call_stack(trace, "with stack"), "b.py(2): f;a.py(1): <module>;");
  EXPECT_EQ(call_stack(trace, "with inputs"), "a.py(1): <module>;");
  EXPECT_EQ(trace.text(*trace.slice_args(find(trace, "with inputs")).text(ArgKey::kConcreteInputs)),
            "[\"5\"]");
  EXPECT_EQ(call_stack(trace, "without"), "none");
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

TEST(ReadSpoolTest, DamagedCallStacksEndWhereTheyMakeNoSense) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  const std::uint32_t frame = spool.text("a.py(1): f");
  RangeRecord ring = spool.range("ring", 3000, 3100);
  ring.detail = spool.text(stack_node(frame, frame + 2));  // itself
  ASSERT_EQ(ring.detail, frame + 2);
  RangeRecord lost_frame = spool.range("lost frame", 3200, 3300);
  lost_frame.detail = spool.text(stack_node(4000, 0));
  RangeRecord lost_caller = spool.range("lost caller", 3400, 3500);
  lost_caller.detail = spool.text(stack_node(frame, 4000));
  RangeRecord no_node = spool.range("no node", 3600, 3700);
  no_node.detail = spool.text(stack_node(frame, frame));
  spool.records(0, 1, {ring, lost_frame, lost_caller, no_node});
  const Trace trace = read_recording(spool.bytes());
  std::string most;
  for (std::size_t i = 0; i <= codec::kMaxStackFrames; ++i) most += "a.py(1): f;";
  EXPECT_EQ(call_stack(trace, "ring"), most);
  EXPECT_EQ(call_stack(trace, "lost frame"), "none");
  EXPECT_EQ(call_stack(trace, "lost caller"), "a.py(1): f;");
  EXPECT_EQ(call_stack(trace, "no node"), "a.py(1): f;");
  EXPECT_EQ(issue_count(trace, ImportIssue::kMissingField), 3u);
}

TEST(ReadSpoolTest, WhatACollectiveHasAnewGoesToTheThreadsNextRange) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  spool.thread(102, 2);
  char buffer[256];
  codec::OpDetailsWriter details(buffer, sizeof buffer);
  details.keywords();
  details.key("Collective name");
  details.string("allreduce");
  const Record before = spool.range("autograd::engine::evaluate_function: B", 2500, 2600);
  spool::CallNumbersRecord call{.begin_tsc = 2990,
                                .flags = spool::kHasSeq | spool::kHasCommsId,
                                .seq = 12,
                                .comms_id = std::numeric_limits<std::uint64_t>::max()};
  RangeRecord op = spool.range("record_param_comms", 3000, 4000);
  op.detail = spool.text(details.bytes());
  call.name = op.name;
  const Record after = spool.range("after", 4500, 4600);
  const Record elsewhere = spool.range("elsewhere", 3000, 3100);
  spool.records(0, 1, {before, call, op, call, after});  // the second one's range was lost
  spool.records(1, 1, {elsewhere});
  const Trace trace = read_recording(spool.bytes());
  const ArgsView args = trace.slice_args(find(trace, "record_param_comms"));
  ASSERT_EQ(args.size(), 6u);  // behind External id and Record function id, before Ev Idx
  EXPECT_EQ(trace.text(args.field(2).key), "Collective name");
  EXPECT_EQ(trace.text(StringId{static_cast<std::uint32_t>(args.bits(args.field(2)))}),
            "allreduce");
  EXPECT_EQ(trace.text(args.field(3).key), "Seq");
  EXPECT_EQ(args.integer(&args.field(3)), 12);
  EXPECT_EQ(trace.text(args.field(4).key), "Comms Id");
  EXPECT_EQ(args.bits(args.field(4)), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(args.has(ArgKey::kSequenceNumber));  // that one is autograd's
  for (const char* name : {"autograd::engine::evaluate_function: B", "after", "elsewhere"})
    EXPECT_EQ(trace.slice_args(find(trace, name)).size(), 3u) << name;
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

TEST(ReadSpoolTest, TensorsGoToTheThreadsNextRangeOrFrame) {
  SpoolSketch spool;
  spool.window(2000, 9000);
  spool.thread(101, 1);
  spool.thread(102, 2);
  const RangeRecord op = spool.range("aten::mm", 3000, 4000);
  const spool::FrameRecord frame{
      .begin_tsc = 4100, .end_tsc = 4800, .name = spool.text("nn.Module: Linear_0"), .depth = 1};
  const Record other = spool.range("aten::add", 5000, 5100);
  const Record elsewhere = spool.range("elsewhere", 3000, 3100);
  using spool::TensorRecord, spool::TensorRole;
  const TensorRecord first{.begin_tsc = 2500,
                           .implementation = 0x7f0000000020,
                           .operator_name = op.name,
                           .device_type = 1,
                           .device_index = 3,
                           .bytes = 4096,
                           .role = TensorRole::kInput,
                           .address = 0x7f0000000010};
  const TensorRecord second{.begin_tsc = 2500,
                            .implementation = 17,
                            .operator_name = op.name,
                            .device_index = -1,
                            .bytes = -1,
                            .input = 2,
                            .role = TensorRole::kInput,
                            .item = 7,
                            .address = 16};
  const TensorRecord parameter{.begin_tsc = 2500,
                               .implementation = 19,
                               .device_index = -1,
                               .bytes = 12,
                               .role = TensorRole::kParameter,
                               .address = 18};
  spool.records(0, 1, {first, second, op, parameter, frame, first, other});  // its range was lost
  spool.records(1, 1, {elsewhere});
  const Trace trace = read_recording(spool.bytes());
  const auto tensors_of = [&](const char* name) -> std::string_view {
    const ArgsView args = trace.slice_args(find(trace, name));
    for (std::size_t i = 0; i < args.size(); ++i)
      if (trace.text(args.field(i).key) == kTensorIdentities)
        return trace.text(StringId{static_cast<std::uint32_t>(args.bits(args.field(i)))});
    return {};
  };
  EXPECT_EQ(tensors_of("aten::mm"),
            "[[0, 0, 0, 139637976727568, 139637976727584, 4096, 1, 3], [0, 2, 7, 16, 17, -1, 0, "
            "-1]]");
  EXPECT_EQ(tensors_of("nn.Module: Linear_0"), "[[1, 0, 0, 18, 19, 12, 0, -1]]");
  EXPECT_EQ(tensors_of("aten::add"), "");
  EXPECT_EQ(tensors_of("elsewhere"), "");
  EXPECT_FALSE(trace.import_stats().lost_anything());
  const std::string json = kineto_json_text(trace);
  EXPECT_THAT(json, ::testing::Not(HasSubstr(std::string(kTensorIdentities))));
  EXPECT_THAT(json, HasSubstr("\"name\":\"aten::mm\""));
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
  EXPECT_EQ(trace.dur_ns(find(trace, "rolled")), 1000);
  EXPECT_EQ(trace.dur_ns(find(trace, "async")), 400);
  EXPECT_EQ(trace.dur_ns(find(trace, "async again")), 200);
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
  EXPECT_EQ(trace.dur_ns(find(trace, "open")), 2000);
  EXPECT_EQ(trace.dur_ns(find(trace, "too long")), 2000);
  EXPECT_EQ(find(trace, "between"), kNone<SliceId>);
  EXPECT_EQ(issue_count(trace, ImportIssue::kOpenRange), 2u);
  const Trace second = read_recording(spool.bytes(), {.session = 1, .cycle = 1, .metadata = {}});
  EXPECT_EQ(find(second, "open"), kNone<SliceId>);
  EXPECT_EQ(second.dur_ns(find(second, "second")), 1000);
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
  EXPECT_EQ(trace.dur_ns(find(trace, "a")), 2000);
  EXPECT_EQ(trace.dur_ns(find(trace, "b")), 0);
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
  EXPECT_EQ(trace.flows()[0].from_ns, trace.start_ns(find(trace, "aten::mm")));
  EXPECT_EQ(trace.flows()[0].to_ns, trace.start_ns(find(trace, "MmBackward0")));
}

TEST(ReadSpoolTest, RecordFunctionIdsAreOfTheRangeBehindThem) {
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
    return trace.slice_args(find(trace, name)).integer(ArgKey::kRecordFunctionId);
  };
  EXPECT_EQ(id_of("autograd::engine::evaluate_function: MmBackward0"), 71);
  EXPECT_EQ(id_of("MmBackward0"), 72);
  EXPECT_EQ(id_of("aten::mm"), 0);
  // The wrapper still gets the numbers of the node inside it.
  EXPECT_EQ(trace.slice_args(find(trace, "autograd::engine::evaluate_function: MmBackward0"))
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
  EXPECT_EQ(trace.dur_ns(find(trace, "a")), 10);
  EXPECT_EQ(trace.dur_ns(find(trace, "b")), 20);
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

TEST(TickMapTest, EveryAnchorIsMetAndTimeNeverRunsBackwards) {
  // The rate changes from 2 to 3 ns a tick at the second anchor.
  const TickMap map(
      {{100, 1000, 50'000}, {2'000'100, 4'001'000, 4'050'000}, {4'000'100, 10'001'000, 10'050'000}},
      1);
  EXPECT_EQ(map.unix_ns(100), 50'000);
  EXPECT_EQ(map.unix_ns(1'000'100), 2'050'000);
  EXPECT_EQ(map.unix_ns(2'000'100), 4'050'000);
  EXPECT_EQ(map.unix_ns(3'000'100), 7'050'000);
  EXPECT_EQ(map.unix_ns(4'000'100), 10'050'000);
  EXPECT_EQ(map.unix_ns(4'000'102),
            10'050'005);  // outside: 10 ms in 4,000,000 ticks, 2.5 ns a tick
  EXPECT_EQ(map.unix_ns(98), 49'995);
  std::int64_t last = *map.unix_ns(0);
  for (std::uint64_t tick = 1; tick < 6'000'000; tick += 997) {
    EXPECT_GE(*map.unix_ns(tick), last);
    last = *map.unix_ns(tick);
  }
}

// A tick is 2 ns. The real clock was set one second ahead between the two anchors, which moves no
// event: the trace's clock is the monotonic one, moved by the first difference, 49'000.
TEST(ClockAnchorsTest, SayWhatTheTraceAndBothClocksCallOneMoment) {
  const TickMap map({{100, 1000, 50'000, 20}, {1'000'100, 2'001'000, 1'002'050'000, 30}},
                    500'000'000);
  EXPECT_EQ(
      clock_anchors_json(map, 500'000'000),
      R"([{"trace_unix_ns": 50000, "monotonic_ns": 1000, "realtime_ns": 50000, "width_ns": 40}, )"
      R"({"trace_unix_ns": 2050000, "monotonic_ns": 2001000, "realtime_ns": 1002050000, )"
      R"("width_ns": 60}])");
  EXPECT_EQ(clock_anchors_json(TickMap({}, 1), 1), "");
}

TEST(ClockAnchorsTest, OfManyTheFirstTheLastAndSomeBetweenAreKept) {
  std::vector<TickAnchor> anchors;
  for (std::int64_t i = 0; i < 1000; ++i)
    anchors.push_back({static_cast<std::uint64_t>(i), i * 1000 + 1, i * 1000 + 7, 0});
  const std::string json = clock_anchors_json(TickMap(anchors, 0), 0);
  EXPECT_EQ(std::count(json.begin(), json.end(), '{'), 64);
  EXPECT_THAT(json, HasSubstr(R"([{"trace_unix_ns": 7, "monotonic_ns": 1,)"));
  EXPECT_THAT(json, HasSubstr(R"("monotonic_ns": 999001, "realtime_ns": 999007, "width_ns": 0}])"));
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

TEST(TickMapTest, TheOtherWayIsTheFirstTickThatIsNotBefore) {
  const TickMap map({{1000, 5000, 105'000}, {2000, 7000, 107'000}}, 500'000'000);  // 2 ns a tick
  EXPECT_EQ(map.ticks_at(106'000), 1500u);
  EXPECT_EQ(map.ticks_at(105'999), 1500u);
  EXPECT_EQ(map.ticks_at(104'000), 500u);
  EXPECT_EQ(map.ticks_at(0), 0u);
  EXPECT_EQ(map.ticks_at(109'000), 3000u);
}

TEST(TickMapTest, WithoutTwoGoodAnchorsTheRoughRateServes) {
  EXPECT_EQ(TickMap({{100, 1000, 1000}}, 500'000'000).unix_ns(200), 1200);
  EXPECT_EQ(TickMap({}, 500'000'000).unix_ns(200), 400);
  EXPECT_EQ(TickMap({}, 0).unix_ns(200), 200);
  EXPECT_FALSE(TickMap({{100, 1000, 1000}}, 1).unix_ns(~std::uint64_t{0}));
}

// 50,000 ticks are 100,000 ns: of the window from tick 10,000 to 110,000 what is after 60,000.
constexpr std::uint64_t kLastNs = 100'000;

std::optional<std::int64_t> began_before(const Trace& trace, SliceId id) {
  const ArgsView args = trace.slice_args(id);
  for (std::size_t i = 0; i < args.size(); ++i)
    if (trace.text(args.field(i).key) == "Began before (ns)") return args.integer(&args.field(i));
  return std::nullopt;
}

TEST(ReadSpoolTest, OfARingTheLastSecondsCount) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 110'000, 0, 1, kLastNs);
  const spool::InstantRecord instant{.begin_tsc = 59'999, .name = sketch.text("early instant")};
  sketch.records(
      0, 3,
      {sketch.range("open", 20'000, 0), sketch.range("gone", 50'000, 59'999),
       sketch.range("across", 58'000, 62'000), instant, sketch.range("whole", 70'000, 80'000)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(find(trace, "gone"), kNone<SliceId>);
  EXPECT_EQ(trace.instants().size(), 2u);  // the two marks of the window
  EXPECT_EQ(trace.window_end_ns() - trace.window_start_ns(), 100'000);
  const SliceId across = find(trace, "across"), open = find(trace, "open"),
                whole = find(trace, "whole");
  EXPECT_EQ(trace.start_ns(across), trace.window_start_ns());
  EXPECT_EQ(trace.dur_ns(across), 4'000);
  EXPECT_EQ(began_before(trace, across), 4'000);
  EXPECT_EQ(trace.dur_ns(open), 100'000);
  EXPECT_EQ(began_before(trace, open), 80'000);
  EXPECT_EQ(trace.start_ns(whole) - trace.window_start_ns(), 20'000);
  EXPECT_EQ(trace.dur_ns(whole), 20'000);
  EXPECT_EQ(began_before(trace, whole), std::nullopt);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kEarlyRange].count, 2u);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kOpenRange].count, 1u);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kLostBegin].count, 0u);
}

TEST(ReadSpoolTest, AKilledRingCountsFromItsNewestTime) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 0, 0, 1, kLastNs);  // the newest time is the anchor at tick 501,000
  sketch.records(0, 1,
                 {sketch.range("gone", 440'000, 450'999), sketch.range("kept", 450'000, 451'001)},
                 false);
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(find(trace, "gone"), kNone<SliceId>);
  EXPECT_EQ(trace.dur_ns(find(trace, "kept")), 2);
}

TEST(ReadSpoolTest, ARingThatLostSomethingBeginsBehindTheGap) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 110'000, 0, 1, kLastNs);
  sketch.lost_until(90'000);
  sketch.records(0, 9,
                 {sketch.range("before", 70'000, 80'000), sketch.range("behind", 95'000, 96'000)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(trace.window_end_ns() - trace.window_start_ns(), 40'000);
  EXPECT_EQ(find(trace, "before"), kNone<SliceId>);
  EXPECT_NE(find(trace, "behind"), kNone<SliceId>);
}

TEST(ReadSpoolTest, RangesOfChunksThatWereGivenBack) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 110'000, 0, 1, kLastNs);
  const auto end_at = [](std::uint32_t sequence, std::uint32_t slot, std::uint64_t tick) {
    return spool::RangeEndRecord{.end_tsc = tick, .place = {slot, sequence}};
  };
  sketch.kept(0, 1, 7, sketch.range("kept", 30'000, 0));
  sketch.kept(0, 5, 0, sketch.range("twice", 65'000, 0));  // its chunk is there as well
  // The ends: of "kept", of a range that nobody kept, and of one that nobody kept
  // before the window.
  sketch.records(0, 5,
                 {sketch.range("twice", 65'000, 70'000), end_at(1, 7, 75'000), end_at(2, 0, 76'000),
                  end_at(2, 1, 59'000)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(trace.dur_ns(find(trace, "kept")), 30'000);
  EXPECT_EQ(began_before(trace, find(trace, "kept")), 60'000);
  EXPECT_EQ(trace.dur_ns(find(trace, "twice")), 10'000);
  EXPECT_EQ(trace.slices().size(), 3u);  // and the window's
  EXPECT_EQ(trace.import_stats()[ImportIssue::kLostBegin].count, 1u);
  EXPECT_EQ(trace.import_stats()[ImportIssue::kOpenRange].count, 0u);
}

spool::FrameRecord frame(SpoolSketch& sketch, std::string_view name, std::uint64_t begin,
                         std::uint64_t end, std::uint32_t depth) {
  return {.begin_tsc = begin, .end_tsc = end, .name = sketch.text(name), .depth = depth};
}
std::optional<std::int64_t> parent_id(const Trace& trace, std::string_view name) {
  return trace.slice_args(find(trace, name)).integer(ArgKey::kPythonParentId);
}
std::optional<std::int64_t> python_id(const Trace& trace, std::string_view name) {
  return trace.slice_args(find(trace, name)).integer(ArgKey::kPythonId);
}

TEST(ReadSpoolTest, AFramesParentIsTheLastOneFurtherOut) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.thread(2, 2);
  sketch.window(2000, 9000);
  spool::FrameRecord module = frame(sketch, "nn.Module: Linear_3", 3100, 3500, 2);
  module.flags = spool::kModuleFrame;
  module.module = 3;
  // The record of depth 3 below "second" was lost.
  sketch.records(0, 1,
                 {frame(sketch, "first", 3000, 4000, 1), module,
                  sketch.range("aten::mm", 3200, 3300), frame(sketch, "leaf", 3400, 3450, 3),
                  frame(sketch, "second", 5000, 6000, 1), frame(sketch, "deep", 5200, 5300, 4)});
  sketch.records(1, 1, {frame(sketch, "other thread", 3100, 3200, 1)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(trace.kind(find(trace, "first")), CategoryKind::kPythonFunction);
  EXPECT_EQ(trace.start_ns(find(trace, "first")), kDay + (3000 - 1000) * 2);
  EXPECT_EQ(trace.dur_ns(find(trace, "first")), 2000);
  EXPECT_EQ(python_id(trace, "first"), 1);
  EXPECT_EQ(parent_id(trace, "first"), std::nullopt);
  EXPECT_TRUE(trace.slice_args(find(trace, "first")).has(ArgKey::kPythonParentId));  // null
  EXPECT_EQ(parent_id(trace, "nn.Module: Linear_3"), 1);
  EXPECT_EQ(trace.slice_args(find(trace, "nn.Module: Linear_3")).integer(ArgKey::kPythonModuleId),
            3);
  EXPECT_FALSE(trace.slice_args(find(trace, "leaf")).has(ArgKey::kPythonModuleId));
  EXPECT_EQ(parent_id(trace, "leaf"), python_id(trace, "nn.Module: Linear_3"));
  EXPECT_EQ(parent_id(trace, "second"), std::nullopt);
  EXPECT_EQ(parent_id(trace, "deep"), python_id(trace, "second"));
  EXPECT_EQ(parent_id(trace, "other thread"), std::nullopt);
  // Operators are numbered as without frames; events in their order.
  EXPECT_EQ(trace.slice_args(find(trace, "aten::mm")).integer(ArgKey::kExternalId), 1);
  EXPECT_EQ(trace.slice_args(find(trace, "aten::mm")).integer(ArgKey::kEvIdx), 2);
  EXPECT_FALSE(trace.slice_args(find(trace, "leaf")).has(ArgKey::kExternalId));
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

// The recorder's window is that of both sessions together; the second is asked for.
TEST(ReadSpoolTest, FramesAreDrawnAsFarAsTheirWindowReaches) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(2000, 9000, 0, 1);
  sketch.window(4000, 6000, 0, 2);
  sketch.window(20'000, 30'000, 0, 2);
  sketch.records(
      0, 1,
      {frame(sketch, "over before", 2500, 3500, 1), frame(sketch, "around", 3600, 7000, 1),
       frame(sketch, "inside", 5000, 5500, 2), frame(sketch, "never ends", 5600, 0, 2),
       sketch.range("open operator", 3700, 5000)});
  ReadSpoolOptions options;
  options.session = 2;
  const Trace trace = read_recording(sketch.bytes(), options);
  EXPECT_EQ(find(trace, "over before"), kNone<SliceId>);
  EXPECT_EQ(find(trace, "open operator"), kNone<SliceId>);
  EXPECT_EQ(trace.start_ns(find(trace, "around")), kDay + (4000 - 1000) * 2);
  EXPECT_EQ(trace.dur_ns(find(trace, "around")), 4000);
  EXPECT_EQ(parent_id(trace, "inside"), python_id(trace, "around"));
  // Not to the session's next window: the recorder's had closed before that.
  EXPECT_EQ(trace.dur_ns(find(trace, "never ends")), 800);
  EXPECT_EQ(issue_count(trace, ImportIssue::kOpenRange), 0u);
  EXPECT_EQ(issue_count(trace, ImportIssue::kEarlyRange), 0u);
}

TEST(ReadSpoolTest, FramesThatARingKeptAreTheParentsOfLaterOnes) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.thread(2, 2);
  sketch.window(10'000, 110'000, 0, 1, kLastNs);
  sketch.kept(0, 1, 7, frame(sketch, "main", 30'000, 0, 1));
  sketch.kept(0, 1, 8, frame(sketch, "train", 31'000, 0, 2));
  sketch.kept(1, 1, 0, frame(sketch, "worker", 32'000, 0, 1));
  sketch.records(0, 5, {frame(sketch, "step", 65'000, 70'000, 3)});
  sketch.records(1, 5, {frame(sketch, "load", 66'000, 70'000, 2)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(trace.start_ns(find(trace, "main")), trace.window_start_ns());
  EXPECT_EQ(parent_id(trace, "train"), python_id(trace, "main"));
  EXPECT_EQ(parent_id(trace, "step"), python_id(trace, "train"));
  EXPECT_EQ(parent_id(trace, "load"), python_id(trace, "worker"));
}

TEST(ReadSpoolTest, DepthsThatMakeNoSenseCostLittle) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(2000, 9000);
  sketch.records(
      0, 1, {frame(sketch, "far", 3000, 4000, 0xffffffff), frame(sketch, "zero", 4100, 4200, 0)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(parent_id(trace, "far"), std::nullopt);
  EXPECT_EQ(parent_id(trace, "zero"), std::nullopt);
}

TEST(ReadSpoolTest, OnlyTheRingOfASessionIsCut) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(10'000, 110'000, 0, 1, kLastNs).window(20'000, 40'000, 0, 2);
  sketch.records(
      0, 1,
      {sketch.range("in both", 25'000, 26'000), sketch.range("in the ring", 100'000, 100'001)});
  ReadSpoolOptions ring, inner;
  ring.session = 1;
  inner.session = 2;
  EXPECT_EQ(find(read_recording(sketch.bytes(), ring), "in both"), kNone<SliceId>);
  EXPECT_NE(find(read_recording(sketch.bytes(), ring), "in the ring"), kNone<SliceId>);
  EXPECT_NE(find(read_recording(sketch.bytes(), inner), "in both"), kNone<SliceId>);
  EXPECT_EQ(find(read_recording(sketch.bytes(), inner), "in the ring"), kNone<SliceId>);
}

TEST(ReadSpoolTest, ALengthOfARingThatMakesNoSenseIsDamage) {
  for (const std::uint64_t last : {~std::uint64_t{0}, std::uint64_t{1} << 62}) {
    SpoolSketch sketch;
    sketch.thread(1, 1);
    sketch.window(10'000, 110'000, 0, 1, last);
    sketch.records(0, 1, {sketch.range("there", 25'000, 26'000)});
    EXPECT_NE(find(read_recording(sketch.bytes()), "there"), kNone<SliceId>);
  }
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
  EXPECT_NE(find(trace, "gr\xef\xbf\xbdn"), kNone<SliceId>);
  EXPECT_NE(find(trace, "gr\xc3\xbcn"), kNone<SliceId>);
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
