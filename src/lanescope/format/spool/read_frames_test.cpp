// Python frames of recordings: parents, modules, and the windows that they are cut to.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "lanescope/format/spool/spool_reading_test.h"
#include "lanescope/testing/spool_sketch.h"

namespace lanescope::format {
namespace {

using lanescope::testing::kDay;
using lanescope::testing::SpoolSketch;

spool::FrameRecord frame(SpoolSketch& sketch, std::string_view name, std::uint64_t begin,
                         std::uint64_t end, std::uint32_t depth) {
  return {.begin_tsc = begin, .end_tsc = end, .name = sketch.text(name), .depth = depth};
}
std::optional<std::int64_t> parent_id(const Trace& trace, std::string_view name) {
  return trace.slice_args(find_slice(trace, name)).integer(ArgKey::kPythonParentId);
}
std::optional<std::int64_t> python_id(const Trace& trace, std::string_view name) {
  return trace.slice_args(find_slice(trace, name)).integer(ArgKey::kPythonId);
}

TEST(ReadFramesTest, AFramesParentIsTheLastOneFurtherOut) {
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
  EXPECT_EQ(trace.kind(find_slice(trace, "first")), CategoryKind::kPythonFunction);
  EXPECT_EQ(trace.start_ns(find_slice(trace, "first")), kDay + (3000 - 1000) * 2);
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "first")), 2000);
  EXPECT_EQ(python_id(trace, "first"), 1);
  EXPECT_EQ(parent_id(trace, "first"), std::nullopt);
  EXPECT_TRUE(trace.slice_args(find_slice(trace, "first")).has(ArgKey::kPythonParentId));  // null
  EXPECT_EQ(parent_id(trace, "nn.Module: Linear_3"), 1);
  EXPECT_EQ(
      trace.slice_args(find_slice(trace, "nn.Module: Linear_3")).integer(ArgKey::kPythonModuleId),
      3);
  EXPECT_FALSE(trace.slice_args(find_slice(trace, "leaf")).has(ArgKey::kPythonModuleId));
  EXPECT_EQ(parent_id(trace, "leaf"), python_id(trace, "nn.Module: Linear_3"));
  EXPECT_EQ(parent_id(trace, "second"), std::nullopt);
  EXPECT_EQ(parent_id(trace, "deep"), python_id(trace, "second"));
  EXPECT_EQ(parent_id(trace, "other thread"), std::nullopt);
  // Operators are numbered as without frames; events in their order.
  EXPECT_EQ(trace.slice_args(find_slice(trace, "aten::mm")).integer(ArgKey::kExternalId), 1);
  EXPECT_EQ(trace.slice_args(find_slice(trace, "aten::mm")).integer(ArgKey::kEvIdx), 2);
  EXPECT_FALSE(trace.slice_args(find_slice(trace, "leaf")).has(ArgKey::kExternalId));
  EXPECT_FALSE(trace.import_stats().lost_anything());
}

// The recorder's window is that of both sessions together; the second is asked for.
TEST(ReadFramesTest, FramesAreDrawnAsFarAsTheirWindowReaches) {
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
  EXPECT_EQ(find_slice(trace, "over before"), kNone<SliceId>);
  EXPECT_EQ(find_slice(trace, "open operator"), kNone<SliceId>);
  EXPECT_EQ(trace.start_ns(find_slice(trace, "around")), kDay + (4000 - 1000) * 2);
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "around")), 4000);
  EXPECT_EQ(parent_id(trace, "inside"), python_id(trace, "around"));
  // Not to the session's next window: the recorder's had closed before that.
  EXPECT_EQ(trace.dur_ns(find_slice(trace, "never ends")), 800);
  EXPECT_EQ(issue_count(trace, ImportIssue::kOpenRange), 0u);
  EXPECT_EQ(issue_count(trace, ImportIssue::kEarlyRange), 0u);
}

TEST(ReadFramesTest, FramesThatARingKeptAreTheParentsOfLaterOnes) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.thread(2, 2);
  sketch.window(10'000, 110'000, 0, 1, 100'000);
  sketch.kept(0, 1, 7, frame(sketch, "main", 30'000, 0, 1));
  sketch.kept(0, 1, 8, frame(sketch, "train", 31'000, 0, 2));
  sketch.kept(1, 1, 0, frame(sketch, "worker", 32'000, 0, 1));
  sketch.records(0, 5, {frame(sketch, "step", 65'000, 70'000, 3)});
  sketch.records(1, 5, {frame(sketch, "load", 66'000, 70'000, 2)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(trace.start_ns(find_slice(trace, "main")), trace.window_start_ns());
  EXPECT_EQ(parent_id(trace, "train"), python_id(trace, "main"));
  EXPECT_EQ(parent_id(trace, "step"), python_id(trace, "train"));
  EXPECT_EQ(parent_id(trace, "load"), python_id(trace, "worker"));
}

TEST(ReadFramesTest, DepthsThatMakeNoSenseCostLittle) {
  SpoolSketch sketch;
  sketch.thread(1, 1);
  sketch.window(2000, 9000);
  sketch.records(
      0, 1, {frame(sketch, "far", 3000, 4000, 0xffffffff), frame(sketch, "zero", 4100, 4200, 0)});
  const Trace trace = read_recording(sketch.bytes());
  EXPECT_EQ(parent_id(trace, "far"), std::nullopt);
  EXPECT_EQ(parent_id(trace, "zero"), std::nullopt);
}

}  // namespace
}  // namespace lanescope::format
