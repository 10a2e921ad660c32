#include "lanescope/analysis/host_wall.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

HostWall wall_of(const Trace& trace, const Window& window, TrackId thread = kNone<TrackId>) {
  const LaunchLinks links = compute_launch_links(trace);
  const HostTimeline timeline(trace);
  const HostWalls walls(trace, links, timeline);
  if (thread == kNone<TrackId>) thread = busiest_host_thread(trace, compute_slice_nesting(trace));
  return walls.of(thread, window);
}

// A step of 100: a batch [2, 22) of which an operator takes 5, forward [30, 50) with an operator in
// it, backward [50, 70) of which an operator takes 8, the optimizer [75, 90) with an operator of 4.
Sketch step() {
  Sketch sketch;
  sketch.annotation("ProfilerStep#1", 0, 100);
  sketch.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 2, 20);
  sketch.op("aten::stack", 10, 5);
  sketch.op("aten::linear", 30, 20).op("aten::addmm", 35, 10);
  sketch.op("autograd::engine::evaluate_function: AddmmBackward0", 50, 20).op("aten::mm", 55, 8);
  sketch.annotation("Optimizer.step#SGD.step", 75, 15).op("aten::add_", 80, 4);
  return sketch;
}

TEST(HostWallTest, EveryMomentBelongsToOnePart) {
  const Trace trace = step().trace();
  const HostWall wall = wall_of(trace, {0, 100});
  EXPECT_EQ(wall.wall_ns, 100);
  EXPECT_EQ(wall.of(HostPart::kLoader), 20);
  EXPECT_EQ(wall.of(HostPart::kOperator), 20);
  EXPECT_EQ(wall.of(HostPart::kBackward), 20);
  EXPECT_EQ(wall.of(HostPart::kOptimizer), 15);
  EXPECT_EQ(wall.of(HostPart::kOutside), 25);
  const HostWall part = wall_of(trace, {40, 80});  // a window may cut ranges
  EXPECT_EQ(part.of(HostPart::kOperator), 10);
  EXPECT_EQ(part.of(HostPart::kBackward), 20);
  EXPECT_EQ(part.of(HostPart::kOptimizer), 5);
  EXPECT_EQ(part.of(HostPart::kOutside), 5);
  HostWall sum = wall;
  sum += part;
  EXPECT_EQ(sum.wall_ns, 140);
  EXPECT_EQ(sum.of(HostPart::kBackward), 40);
}

TEST(HostWallTest, BackwardOnAnotherThreadCountsWhileThisOneIsOutside) {
  Sketch sketch;
  sketch.annotation("ProfilerStep#1", 0, 100).op("aten::mm", 10, 20);
  // [25, 35) and [33, 60) on the engine's thread, of which [25, 30) overlaps aten::mm.
  sketch.op("autograd::engine::evaluate_function: MmBackward0", 25, 10, {.tid = 7});
  sketch.op("autograd::engine::evaluate_function: AddBackward0", 33, 27, {.tid = 8});
  const Trace trace = sketch.trace();
  const HostWall wall = wall_of(trace, {0, 100}, TrackId{0});
  EXPECT_EQ(trace.track(TrackId{0}).tid.number, 100);
  EXPECT_EQ(wall.of(HostPart::kOperator), 20);
  EXPECT_EQ(wall.of(HostPart::kBackward), 30);
  EXPECT_EQ(wall.of(HostPart::kOutside), 50);
}

TEST(HostWallTest, TheThreadOfAStepIsTheOneThatMarksItUnlessItHardlyWorks) {
  const auto chosen = [](std::int64_t own_ns) {
    Sketch sketch;
    sketch.annotation("ProfilerStep#1", 0, 100).op("aten::add", 0, own_ns);
    sketch.op("aten::mm", 0, 50, {.tid = 7}).op("aten::t", 10, 30, {.tid = 7});
    sketch.op("autograd::engine::evaluate_function: MmBackward0", 0, 900, {.tid = 8});
    const Trace trace = sketch.trace();
    return trace.track(step_thread(trace, compute_slice_nesting(trace), TrackId{0})).tid.number;
  };
  EXPECT_EQ(chosen(5), 100);
  EXPECT_EQ(chosen(4), 7);
}

TEST(HostWallTest, CompilingIsNoOperatorWhereverItHappens) {
  Sketch sketch = step();
  sketch.slice("cpu_op", "_compile.compile_inner (dynamo_timed)", 31, 3);
  sketch.op("aten::empty", 32, 1);
  sketch.slice("cpu_op", "backward._backward_impl (dynamo_timed)", 64, 5);
  const HostWall wall = wall_of(sketch.trace(), {0, 100});
  EXPECT_EQ(wall.of(HostPart::kCompile), 8);
  EXPECT_EQ(wall.of(HostPart::kOperator), 17);
  EXPECT_EQ(wall.of(HostPart::kBackward), 15);
}

TEST(HostWallTest, PythonFramesBelongToTheRangeAroundThem) {
  Sketch sketch = step();
  sketch.slice("python_function", "dataset.py(7): __getitem__", 3, 6);
  sketch.slice("python_function", "sgd.py(90): step", 76, 12);
  sketch.slice("python_function", "train.py(12): report", 92, 5);
  const HostWall wall = wall_of(sketch.trace(), {0, 100});
  EXPECT_EQ(wall.of(HostPart::kLoader), 20);
  EXPECT_EQ(wall.of(HostPart::kOptimizer), 15);
  EXPECT_EQ(wall.of(HostPart::kOutside), 25);
}

TEST(HostWallTest, TheBusiestThreadHasMostTimeInOperators) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 50, {.tid = 7}).op("aten::mm", 0, 80, {.tid = 8});
  const Trace trace = sketch.trace();
  const TrackId thread = busiest_host_thread(trace, compute_slice_nesting(trace));
  ASSERT_NE(thread, kNone<TrackId>);
  EXPECT_EQ(trace.track(thread).tid.number, 8);
  const Trace none = Sketch().trace();
  EXPECT_EQ(busiest_host_thread(none, compute_slice_nesting(none)), kNone<TrackId>);
}

}  // namespace
}  // namespace lanescope::analysis
