// Which lanes matter and what kind of time they hold, on traces chosen by hand.
#include <gtest/gtest.h>

#include <string>

#include "lanescope/testing/sketch.h"
#include "lanescope/view/lanes.h"

namespace lanescope::view {
namespace {

using testing::Sketch;

struct Chosen {
  explicit Chosen(Trace made)
      : trace(std::move(made)), facts(*explain::gather_facts(trace)), lanes(facts) {}
  Trace trace;
  explain::Facts facts;
  Lanes lanes;

  const Lane* lane_of(std::int64_t tid) const {
    for (const Lane& lane : lanes.lanes())
      if (lane.track != kNone<TrackId> && trace.track(lane.track).tid.number == tid) return &lane;
    return nullptr;
  }
  TimeKind kind_of(std::string_view name) const {
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
      if (trace.name(SliceId{i}) == name) return lanes.kind(SliceId{i});
    ADD_FAILURE() << "no " << name;
    return TimeKind::kOther;
  }
};

TEST(LaneChoiceTest, StreamsOfAnMtiaAreWorkOfADevice) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 900, {.tid = 100});
  sketch.op("aten::to", 0, 5, {.tid = 100});
  sketch.slice("mtia_ccp_events", "event_wait", 0, 400, {.tid = 101});
  sketch.slice("mtia_ccp_events", "pe_exe", 400, 300, {.tid = 101});
  sketch.slice("mtia_ccp_events", "pe_exe", 600, 300, {.tid = 101});  // overlaps the one before
  sketch.slice("mtia_ccp_events", "dma_request", 650, 150, {.tid = 102});
  const Chosen chosen(sketch.trace());
  EXPECT_EQ(chosen.kind_of("event_wait"), TimeKind::kWait);
  EXPECT_EQ(chosen.kind_of("pe_exe"), TimeKind::kCompute);
  EXPECT_EQ(chosen.kind_of("dma_request"), TimeKind::kCopy);
  ASSERT_TRUE(chosen.lane_of(101) && chosen.lane_of(102) && chosen.lane_of(100));
  EXPECT_EQ(chosen.lane_of(101)->kind, LaneKind::kDevice);
  EXPECT_EQ(chosen.lane_of(101)->row_count, 2u);
  EXPECT_TRUE(chosen.lane_of(101)->is_main);
  EXPECT_TRUE(chosen.lane_of(102)->is_main);
  EXPECT_EQ(chosen.lane_of(100)->kind, LaneKind::kCpu);
}

// Process 1 are the streams of the NPU, 2 its collectives, 3 what CANN summed up of both.
TEST(LaneChoiceTest, SumsOfCannAreNotTheStreamsThatMatter) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 900, {.tid = 100});
  TraceBuilder& builder = sketch.builder();
  const auto number = [](std::int64_t value) { return Scalar{false, value, kNone<StringId>}; };
  const auto row = [&](std::int64_t pid, std::int64_t tid, std::string_view name,
                       std::int64_t start, std::int64_t dur) {
    builder.add_slice(builder.thread_track(number(pid), number(tid)), builder.category(""),
                      builder.intern(name), start, dur, builder.args().end());
  };
  builder.set_process_name(number(1), builder.intern("Ascend Hardware"));
  builder.set_process_name(number(2), builder.intern("HCCL"));
  builder.set_process_name(number(3), builder.intern("Overlap Analysis"));
  row(1, 2, "MatMul", 0, 100);
  row(1, 2, "EVENT_WAIT", 100, 700);
  row(2, 4, "hcom_allReduce__868_0_1", 200, 500);
  row(2, 5, "Notify_Wait", 200, 400);
  row(3, 6, "Computing", 0, 100);
  row(3, 7, "Free", 700, 200);
  const Chosen chosen(sketch.trace());
  EXPECT_EQ(chosen.kind_of("MatMul"), TimeKind::kCompute);
  EXPECT_EQ(chosen.kind_of("EVENT_WAIT"), TimeKind::kWait);
  EXPECT_EQ(chosen.kind_of("hcom_allReduce__868_0_1"), TimeKind::kCommunication);
  EXPECT_EQ(chosen.kind_of("Computing"), TimeKind::kCompute);
  EXPECT_EQ(chosen.kind_of("Free"), TimeKind::kWait);
  EXPECT_TRUE(chosen.lane_of(2)->is_main);
  EXPECT_TRUE(chosen.lane_of(4)->is_main);
  EXPECT_FALSE(chosen.lane_of(5)->is_main) << "it only waits";
  EXPECT_FALSE(chosen.lane_of(6)->is_main) << "a sum of other rows";
  EXPECT_EQ(chosen.lane_of(6)->kind, LaneKind::kDevice);
}

// The forward pass launches six kernels from one thread, the backward pass four from another; a third
// thread is as busy and launches nothing.
TEST(LaneChoiceTest, ThreadsThatLaunchMuchMatter) {
  Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = i * 1'000;
    sketch.runtime("cudaLaunchKernel", at, 100, {.tid = i < 6 ? 100 : 200, .correlation = i + 1});
    sketch.kernel("gemm", at + 200, 300, {.correlation = i + 1});
    sketch.op("aten::copy_", at, 900, {.tid = 300});
  }
  const Chosen chosen(sketch.trace());
  ASSERT_TRUE(chosen.lane_of(100) && chosen.lane_of(200) && chosen.lane_of(300));
  EXPECT_TRUE(chosen.lane_of(100)->is_main);
  EXPECT_TRUE(chosen.lane_of(200)->is_main);
  EXPECT_FALSE(chosen.lane_of(300)->is_main);
}

// Python, two threads that launch, two busy streams, idle times and the launch queue are seven lanes.
TEST(LaneChoiceTest, TheFirstScreenHasFiveLanesAndTheSteps) {
  Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = i * 1'000;
    sketch.annotation("ProfilerStep#" + std::to_string(i), at, 950, {.tid = 100});
    sketch.slice("python_function", "train.py(3): step", at, 940, {.tid = 100});
    sketch.runtime("cudaLaunchKernel", at + 10, 100, {.tid = 100, .correlation = 2 * i + 1});
    sketch.kernel("gemm", at + 200, 300, {.stream = 7, .correlation = 2 * i + 1});
    sketch.runtime("cudaLaunchKernel", at + 20, 50, {.tid = 200, .correlation = 2 * i + 2});
    sketch.kernel("nccl", at + 600, 100, {.stream = 9, .correlation = 2 * i + 2});
    sketch.op("aten::copy_", at, 900, {.tid = 300});
  }
  const Chosen chosen(sketch.trace());
  std::vector<std::pair<LaneKind, std::int64_t>> main;
  for (const Lane& lane : chosen.lanes.lanes())
    if (lane.is_main)
      main.emplace_back(
          lane.kind, lane.track == kNone<TrackId> ? 0 : chosen.trace.track(lane.track).tid.number);
  EXPECT_EQ(main, (std::vector<std::pair<LaneKind, std::int64_t>>{{LaneKind::kSteps, 0},
                                                                  {LaneKind::kCpu, 100},
                                                                  {LaneKind::kIdle, 0},
                                                                  {LaneKind::kGpu, 7},
                                                                  {LaneKind::kGpu, 9},
                                                                  {LaneKind::kCpu, 200}}));
}

// As a trace of counters, of which none is among those that usually matter.
TEST(LaneChoiceTest, ATraceOfNoProgramShowsItsFewLanes) {
  Sketch sketch;
  for (int thread = 0; thread < 4; ++thread)
    for (int i = 0; i < 3; ++i) sketch.slice("x", "work", i * 100, 90, {.tid = 100 + thread});
  const Chosen chosen(sketch.trace());
  EXPECT_EQ(chosen.lanes.lanes().size(), 4u);
  for (const Lane& lane : chosen.lanes.lanes()) EXPECT_TRUE(lane.is_main);
}

TEST(LaneChoiceTest, CollectivesOfTheCpuAreCommunication) {
  Sketch sketch;
  sketch.annotation("ProfilerStep#1", 0, 900);
  sketch.annotation("gloo:all_reduce", 100, 700, {.tid = 200});
  sketch.annotation("mpi:broadcast", 100, 700, {.tid = 201});
  const Chosen chosen(sketch.trace());
  EXPECT_EQ(chosen.kind_of("gloo:all_reduce"), TimeKind::kCommunication);
  EXPECT_EQ(chosen.kind_of("mpi:broadcast"), TimeKind::kCommunication);
  EXPECT_EQ(chosen.kind_of("ProfilerStep#1"), TimeKind::kAnnotation);
}

}  // namespace
}  // namespace lanescope::view
