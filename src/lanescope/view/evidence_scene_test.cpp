// Windows and lanes of drawn programs, worked out by hand.
#include "lanescope/view/evidence_scene.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/testing/program_sketch.h"

namespace lanescope::view {
namespace {

using explain::Facts;
using testing::ProgramSketch;
using testing::Sketch;

SliceId find(const Trace& trace, std::string_view name, std::size_t nth = 0) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name && nth-- == 0) return SliceId{i};
  ADD_FAILURE() << "no " << name;
  return kNone<SliceId>;
}

// One thread: outer [0, 100) us holds aten::mm [10, 40), which holds the launch [20, 24). The
// kernel runs [30, 50), a second one [80, 90) with its launch [70, 74): the GPU is idle [50, 80).
Trace two_kernels() {
  Sketch sketch;
  sketch.annotation("outer", 0, 100'000);
  sketch.op("aten::mm", 10'000, 30'000)
      .runtime("cudaLaunchKernel", 20'000, 4'000, {.correlation = 1});
  sketch.kernel("first", 30'000, 20'000, {.correlation = 1});
  sketch.op("aten::add", 65'000, 12'000);
  sketch.runtime("cudaLaunchKernel", 70'000, 4'000, {.correlation = 2});
  sketch.kernel("second", 80'000, 10'000, {.correlation = 2});
  return sketch.trace();
}

const SceneLane* lane_of(const Scene& scene, SceneLane::Kind kind) {
  for (const SceneLane& lane : scene.lanes)
    if (lane.kind == kind) return &lane;
  return nullptr;
}

TEST(EvidenceWindowTest, OfAKernelHoldsTheGapBeforeItAndItsLaunch) {
  const Trace trace = two_kernels();
  const Facts facts = *explain::gather_facts(trace);
  // The gap [50, 80) and the kernel until 90: 40 us, and a sixteenth of it on both sides.
  const auto window = evidence_window(facts, find(trace, "second"));
  EXPECT_EQ(window.start_ns, 50'000 - 2'500);
  EXPECT_EQ(window.end_ns, 90'000 + 2'500);
}

TEST(EvidenceWindowTest, OfAnOperatorHoldsWhatItLaunchedAndTheGapAfterIt) {
  const Trace trace = two_kernels();
  const Facts facts = *explain::gather_facts(trace);
  // aten::mm [10, 40), its kernel ends at 50, and no gap touches the operator.
  const auto window = evidence_window(facts, find(trace, "aten::mm"));
  EXPECT_EQ(window.start_ns, 10'000 - 2'500);
  EXPECT_EQ(window.end_ns, 50'000 + 2'500);
}

TEST(EvidenceWindowTest, OfALongRangeShowsTheLongestWaitForTheCpu) {
  // 300 launches of 10 us each; before the 200th the CPU does something else for 500 us.
  ProgramSketch program;
  program.step();
  for (int i = 0; i < 300; ++i) {
    if (i == 200) program.pass(500);
    program.launch({.us = 8});
  }
  program.end();
  const Trace trace = program.trace();
  const Facts facts = *explain::gather_facts(trace);
  const SliceId step = find(trace, "ProfilerStep#1");
  const auto window = evidence_window(facts, step);
  // The CPU is at 1000 + 200 * 10 us when the pause begins, which lasts 500 us.
  EXPECT_LT(window.start_ns, 3'000'000 + 20'000);
  EXPECT_GT(window.end_ns, 3'500'000);
  EXPECT_LT(window.length_ns(), trace.dur_ns(step) / 3);
  EXPECT_TRUE(make_evidence_scene(facts, step).is_clip);
}

TEST(EvidenceSceneTest, ShowsTheWayFromTheRangeToTheKernel) {
  const Trace trace = two_kernels();
  const Facts facts = *explain::gather_facts(trace);
  const Scene scene = make_evidence_scene(facts, find(trace, "first"));
  EXPECT_THAT(scene.path, ::testing::ElementsAre(find(trace, "outer"), find(trace, "aten::mm"),
                                                 find(trace, "cudaLaunchKernel")));
  const SceneLane* operators = lane_of(scene, SceneLane::Kind::kOperators);
  ASSERT_TRUE(operators);
  EXPECT_EQ(operators->row_count, 2u);
  const SceneLane* stream = lane_of(scene, SceneLane::Kind::kStream);
  ASSERT_TRUE(stream);
  ASSERT_EQ(stream->bars.size(), 1u);  // the second kernel lies outside
  EXPECT_TRUE(stream->bars[0].is_evidence);
  ASSERT_EQ(scene.arrows.size(), 1u);
  EXPECT_EQ(scene.arrows[0].launch_end_ns, 24'000);
  EXPECT_EQ(scene.arrows[0].work_start_ns, 30'000);
}

TEST(EvidenceSceneTest, IdleTimesAreThoseInsideTheWindow) {
  const Trace trace = two_kernels();
  const Facts facts = *explain::gather_facts(trace);
  const Scene scene = make_evidence_scene(facts, find(trace, "second"));
  // The gap of 30 us; the window begins with 2.5 us of the first kernel and ends after all work.
  EXPECT_EQ(scene.idle_ns, 30'000);
  std::int64_t sum = 0;
  for (const SceneIdle& idle : scene.idle) sum += idle.idle_ns;
  EXPECT_EQ(sum, scene.idle_ns);
}

// 20,000 kernels of 1 us every 2 us under one wait: bars fold, and together they know how long the
// kernels ran.
TEST(EvidenceSceneTest, ManyShortSlicesFoldIntoABoundedNumberOfBars) {
  Sketch sketch;
  for (int i = 0; i < 20'000; ++i)
    sketch.kernel("tiny", 1'000'000 + 2'000 * i, 1'000, {.correlation = i + 1});
  sketch.runtime("cudaLaunchKernel", 0, 1'000, {.correlation = 1});
  sketch.runtime("cudaDeviceSynchronize", 1'000'000, 40'000'000);
  const Trace trace = sketch.trace();
  const Facts facts = *explain::gather_facts(trace);
  const Scene scene = make_evidence_scene(facts, find(trace, "cudaDeviceSynchronize"));
  const SceneLane* stream = lane_of(scene, SceneLane::Kind::kStream);
  ASSERT_TRUE(stream);
  EXPECT_LE(stream->bars.size(), 400u);
  EXPECT_LE(scene.idle.size(), 800u);
  std::uint64_t count = 0;
  std::int64_t busy = 0;
  for (const SceneBar& bar : stream->bars) {
    count += bar.folded_count;
    busy += bar.busy_ns;
  }
  EXPECT_EQ(count, 20'000u);
  EXPECT_EQ(busy, 20'000'000);
}

// Deep nesting: the rows shown are those around the evidence, and what lies deeper is counted.
TEST(EvidenceSceneTest, DeepStacksKeepTheRowsAroundTheEvidence) {
  Sketch sketch;
  std::int64_t start = 0, dur = 100'000;
  for (int depth = 0; depth < 14; ++depth) {
    sketch.op("op" + std::to_string(depth), start, dur);
    start += 1'000;
    dur -= 2'000;
  }
  const Trace trace = sketch.trace();
  const Facts facts = *explain::gather_facts(trace);
  const Scene scene = make_evidence_scene(facts, find(trace, "op7"));
  const SceneLane* operators = lane_of(scene, SceneLane::Kind::kOperators);
  ASSERT_TRUE(operators);
  EXPECT_EQ(operators->row_count, kMostOperatorRows);  // op4 to op9
  ASSERT_FALSE(operators->bars.empty());
  EXPECT_EQ(trace.name(operators->bars.front().slice), "op4");
  EXPECT_EQ(scene.deeper_row_count, 4u);  // op10 to op13
  EXPECT_FALSE(scene.device);             // no GPU in this trace
}

// Frames of Python lie between a step and its operators; the step is still the row above.
TEST(EvidenceSceneTest, WhatEnclosesTheEvidenceIsFoundBehindManyPythonFrames) {
  Sketch sketch;
  sketch.annotation("ProfilerStep#1", 0, 10'000'000);
  for (int i = 0; i < 3'000; ++i) sketch.slice("python_function", "frame", 1'000 + 1'000 * i, 900);
  sketch.op("aten::mm", 5'000'000, 1'000).runtime("cudaLaunchKernel", 5'000'100, 500);
  const Trace trace = sketch.trace();
  const Facts facts = *explain::gather_facts(trace);
  const Scene scene = make_evidence_scene(facts, find(trace, "aten::mm"));
  const SceneLane* operators = lane_of(scene, SceneLane::Kind::kOperators);
  ASSERT_TRUE(operators);
  ASSERT_EQ(operators->bars.size(), 2u);
  EXPECT_EQ(trace.name(operators->bars[0].slice), "ProfilerStep#1");
  EXPECT_EQ(operators->bars[0].row, 0u);
  EXPECT_EQ(operators->bars[1].row, 1u);
}

// Overlapping kernels of one stream get rows of their own and none is lost.
TEST(EvidenceSceneTest, OverlappingKernelsOfAStreamGetSubRows) {
  Sketch sketch;
  sketch.kernel("a", 0, 50'000).kernel("b", 20'000, 50'000).kernel("c", 30'000, 10'000);
  const Trace trace = sketch.trace();
  const Facts facts = *explain::gather_facts(trace);
  const Scene scene = make_evidence_scene(facts, find(trace, "b"));
  const SceneLane* stream = lane_of(scene, SceneLane::Kind::kStream);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->row_count, 3u);
  EXPECT_EQ(stream->bars.size(), 3u);
}

// The widest times that facts are made from.
TEST(EvidenceSceneTest, TheWidestTimesDoNotOverflow) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 51U;
  Sketch sketch;
  sketch.op("early", -kHuge, 10).op("late", 0, kHuge).kernel("k", kHuge - 5, 5);
  const Trace trace = sketch.trace();
  const Facts facts = *explain::gather_facts(trace);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const Scene scene = make_evidence_scene(facts, SliceId{i});
    EXPECT_GT(scene.window.length_ns(), 0);
  }
}

}  // namespace
}  // namespace lanescope::view
