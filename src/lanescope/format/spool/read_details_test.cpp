// What a recording has of an operator besides its name and times: call stacks, numbers of collectives, tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "lanescope/codec/op_details.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/format/spool/spool_reading_test.h"
#include "lanescope/format/spool/tensor_identities.h"
#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format {
namespace {

using spool::RangeRecord;
using spool::Record;
using ::testing::HasSubstr;

using lanescope::testing::SpoolSketch;

std::string stack_node(std::uint32_t frame, std::uint32_t caller) {
  char buffer[codec::kMaxStackNodeBytes];
  codec::OpDetailsWriter writer(buffer, sizeof buffer);
  writer.stack_node(frame, caller);
  return std::string(writer.bytes());
}

std::string call_stack(const Trace& trace, std::string_view name) {
  const auto text = trace.slice_args(find_slice(trace, name)).text(ArgKey::kCallStack);
  return text ? std::string(trace.text(*text)) : "none";
}

TEST(ReadDetailsTest, NodesBecomeACallStackInnermostFirst) {
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
  EXPECT_EQ(
      trace.text(*trace.slice_args(find_slice(trace, "with inputs")).text(ArgKey::kConcreteInputs)),
      "[\"5\"]");
  EXPECT_EQ(call_stack(trace, "without"), "none");
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

TEST(ReadDetailsTest, DamagedCallStacksEndWhereTheyMakeNoSense) {
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

TEST(ReadDetailsTest, WhatACollectiveHasAnewGoesToTheThreadsNextRange) {
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
  const ArgsView args = trace.slice_args(find_slice(trace, "record_param_comms"));
  ASSERT_EQ(args.size(), 6u);  // after External id and Record function id, before Ev Idx
  EXPECT_EQ(trace.text(args.field(2).key), "Collective name");
  EXPECT_EQ(trace.text(StringId{static_cast<std::uint32_t>(args.bits(args.field(2)))}),
            "allreduce");
  EXPECT_EQ(trace.text(args.field(3).key), "Seq");
  EXPECT_EQ(args.integer(&args.field(3)), 12);
  EXPECT_EQ(trace.text(args.field(4).key), "Comms Id");
  EXPECT_EQ(args.bits(args.field(4)), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(args.has(ArgKey::kSequenceNumber));  // that one is autograd's
  for (const char* name : {"autograd::engine::evaluate_function: B", "after", "elsewhere"})
    EXPECT_EQ(trace.slice_args(find_slice(trace, name)).size(), 3u) << name;
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

TEST(ReadDetailsTest, TensorsGoToTheThreadsNextRangeOrFrame) {
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
    const ArgsView args = trace.slice_args(find_slice(trace, name));
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

}  // namespace
}  // namespace lanescope::format
