#include "lanescope/simulate/changes.h"

#include <gtest/gtest.h>

#include <vector>

#include "lanescope/names/kernel_name.h"
#include "lanescope/simulate/drawn_steps_test.h"
#include "lanescope/testing/program_sketch.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::simulate {
namespace {

using lanescope::testing::ProgramSketch;
using lanescope::testing::Sketch;
using testing::DrawnSteps;

Trace gpu_bound() {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) { p.kernel("gemm", 500).kernel("relu", 250); });
  return program.trace();
}

// 400 us of Python, then a kernel of 20 us for which the CPU waits.
Trace cpu_bound() {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) { p.pass(400).launch({.us = 20}).wait(); });
  return program.trace();
}

TEST(ParseChange, SaysWhatItExpectedAndFound) {
  for (const char* text : {"", "faster", "speed", "speed gemm", "speed gemm 0x", "cpu", "cpu 2",
                           "remove", "cuda-graph now", "pin fast", "no-profiler x"}) {
    const auto change = parse_change(text);
    ASSERT_FALSE(change) << text;
    EXPECT_NE(change.error().message.find("expected"), std::string::npos);
    EXPECT_NE(change.error().message.find(std::string("found '") + text), std::string::npos);
  }
  const auto speed = parse_change("  speed void f<int, 2>(int) 2.5x ");
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->name, "void f<int, 2>(int)");
  EXPECT_EQ(speed->factor, 2.5);
  EXPECT_EQ(parse_change("pin 50 GB/s")->number, 50);
}

TEST(Change, SpeedOfAKernelOnTheCriticalPathIsGained) {
  const DrawnSteps drawn(gpu_bound());
  EXPECT_EQ(drawn.simulation.recorded.step_ns, 750'000);
  EXPECT_EQ(drawn.step_ns({"speed gemm 2x"}), 500'000);
  EXPECT_EQ(drawn.step_ns({"speed gemm 1x"}), 750'000);
}

TEST(Change, WhatIsOffTheCriticalPathGainsNothing) {
  EXPECT_EQ(DrawnSteps(gpu_bound()).step_ns({"cpu 2x"}), 750'000);
  // Here the CPU waits for each kernel, so only its 20 us are on the path.
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) { p.launch({.us = 20}).pass(400); });
  const DrawnSteps no_wait(program.trace());
  EXPECT_EQ(no_wait.step_ns({"speed gemm 4x"}), no_wait.simulation.recorded.step_ns);
}

TEST(Change, RemovingAWaitLetsTheCpuRunAhead) {
  const DrawnSteps drawn(cpu_bound());
  const std::int64_t recorded = drawn.simulation.recorded.step_ns;
  // The kernel is hidden after the next step's Python. The wait's call goes, too.
  const std::int64_t without = drawn.step_ns({"remove-sync"});
  EXPECT_LT(without, recorded - 15'000);
  EXPECT_GT(without, 400'000);
  EXPECT_EQ(drawn.step_ns({"remove-sync aten::item"}), without);
  EXPECT_EQ(drawn.step_ns({"remove-sync aten::nonzero"}), -1);
}

// cudaMemcpy waits for its copy to the GPU of 200 us. Nobody can leave that out, unless the change names the call: with pinned memory.
TEST(Change, RemovingTheWaitOfACopyToTheGpuNeedsItsCall) {
  ProgramSketch program;
  std::vector<SliceId> calls;
  program.steps(4, [](ProgramSketch& p) {
    const std::int64_t start_us = p.cpu_us(), correlation = 1000 + start_us;
    p.sketch().runtime("cudaMemcpy", p.at(start_us), p.at(205), {.correlation = correlation});
    p.sketch().slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", p.at(start_us + 3),
                     p.at(200), {.correlation = correlation, .bytes = 1'000'000});
    p.pass(205 + 150);
  });
  const DrawnSteps drawn(program.trace());
  for (std::uint32_t i = 0; i < drawn.trace.slices().size(); ++i)
    if (drawn.trace.name(SliceId{i}) == "cudaMemcpy") calls.push_back(SliceId{i});
  EXPECT_EQ(drawn.step_ns({"remove-sync"}), -1);
  Change named = *parse_change("remove-sync");
  named.slices = calls;
  const auto prediction = predict(drawn.simulation, {&named, 1});
  ASSERT_TRUE(prediction);
  EXPECT_GT(prediction->gain_ns(), 100'000);
}

TEST(Change, RemovedKernelsTakeTheirLaunchWithThem) {
  const DrawnSteps drawn(gpu_bound());
  EXPECT_EQ(drawn.step_ns({"remove gemm"}), 250'000);
  EXPECT_EQ(drawn.step_ns({"remove conv"}), -1);
}

TEST(Change, TheOrderDoesNotMatter) {
  const DrawnSteps drawn(cpu_bound());
  const std::int64_t both = drawn.step_ns({"cpu 2x", "remove-sync"});
  EXPECT_EQ(both, drawn.step_ns({"remove-sync", "cpu 2x"}));
  EXPECT_LT(both, drawn.step_ns({"remove-sync"}));
  EXPECT_EQ(drawn.step_ns({"no-profiler 2 us", "cpu 2x"}),
            drawn.step_ns({"cpu 2x", "no-profiler 2 us"}));
  EXPECT_EQ(drawn.step_ns({"no-profiler 0 us"}), drawn.simulation.recorded.step_ns);
}

TEST(Change, AGraphNeedsAStepWithoutWaitsBetweenLaunches) {
  ProgramSketch waits;
  waits.steps(4, [](ProgramSketch& p) { p.launch({.us = 20}).wait().launch({.us = 20}); });
  const DrawnSteps refused(waits.trace());
  const auto change = parse_change("cuda-graph");
  const auto prediction = predict(refused.simulation, {&*change, 1});
  ASSERT_FALSE(prediction);
  EXPECT_EQ(prediction.error().code, Errc::kUnsupported);
  EXPECT_GT(refused.step_ns({"cuda-graph", "remove-sync"}), 0);

  // Ten launches of 10 us each for kernels of 2 us: the kernels and one launch are left.
  ProgramSketch launches;
  launches.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 10; ++i) p.launch({.us = 2});
  });
  const DrawnSteps drawn(launches.trace());
  EXPECT_GT(drawn.simulation.recorded.step_ns, 100'000);
  EXPECT_LT(drawn.step_ns({"cuda-graph"}), 50'000);
  EXPECT_GE(drawn.step_ns({"cuda-graph"}), 20'000);
}

TEST(Change, KernelsOfAGraphFollowEachOtherClosely) {
  // Each kernel more takes its own 2 us and a gap of 0.13 us, not the gap of about 1 us between kernels of a stream.
  const auto step_of = [](int kernels) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < kernels; ++i) p.launch({.us = 2});
    });
    return DrawnSteps(program.trace()).step_ns({"cuda-graph"});
  };
  EXPECT_EQ(step_of(40) - step_of(20), 20 * (2'000 + 130));
}

// Ten calls with 10 us of Python between them, which is there to make them. 200 us before another operator are not.
TEST(Change, CallsThatGoTakeThePythonBetweenThemAlong) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    for (int i = 0; i < 10; ++i) p.pass(10).launch({.us = 1, .op = "aten::mul"});
    p.pass(200).launch({.us = 1, .op = "aten::mm"}).wait();
  });
  const DrawnSteps drawn(program.trace());
  Change named = *parse_change("remove aten::mul"), listed = named;
  for (std::uint32_t i = 0; i < drawn.trace.slices().size(); ++i)
    if (drawn.trace.name(SliceId{i}) == "aten::mul") listed.slices.push_back(SliceId{i});
  const auto step = [&](const Change& change) {
    return predict(drawn.simulation, {&change, 1})->after.step_ns;
  };
  EXPECT_EQ(step(named) - step(listed), 9 * 10'000);
}

TEST(Change, OverlappedCopiesLeaveTheKernels) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.launch({.name = "Memcpy HtoD (Pinned -> Device)",
              .us = 300,
              .category = "gpu_memcpy",
              .call = "cudaMemcpyAsync"});
    p.kernel("gemm", 500);
  });
  const DrawnSteps drawn(program.trace());
  EXPECT_EQ(drawn.simulation.recorded.step_ns, 800'000);
  EXPECT_EQ(drawn.step_ns({"overlap-copies"}), 500'000);
}

// The loader works in this process: 200 us in an operator and 100 us of Python.
TEST(Change, OperatorsOfALoaderInThisProcessAreItsTime) {
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    p.cpu_op("aten::stack", 200).pass(100).end();
    p.pass(400).launch({.us = 20}).wait();
  });
  const DrawnSteps drawn(program.trace());
  const std::int64_t recorded = drawn.simulation.recorded.step_ns;
  EXPECT_EQ(recorded - drawn.step_ns({"loader 2x"}), 150'000);
  // Four workers make a batch in 75 us, which is less than the rest of the step.
  EXPECT_EQ(recorded - drawn.step_ns({"workers 4"}), 300'000);
  // A faster CPU leaves the loader as it is.
  EXPECT_GE(drawn.step_ns({"cpu 100x"}), 300'000);
  const auto& path = drawn.simulation.recorded.path;
  EXPECT_EQ(path.of(PathKind::kData), static_cast<std::int64_t>(path.steps) * 300'000);
}

// Steps of 200 us: a launch call [10, 110], 40 kernels of 2 us from 100 on, a wait [120, 185].
Trace replays(std::string_view call) {
  lanescope::testing::Sketch sketch;
  for (std::int64_t step = 0; step < 5; ++step) {
    const auto at = [&](std::int64_t us) { return (step * 200 + us) * 1000; };
    const auto correlation = step * 2 + 1;
    sketch.annotation("ProfilerStep#" + std::to_string(step + 1), at(0), 200'000);
    sketch.runtime(call, at(10), 100'000, {.correlation = correlation});
    for (std::int64_t node = 0; node < 40; ++node)
      sketch.kernel("gemm", at(100 + 2 * node), 2'000, {.correlation = correlation});
    sketch.runtime("cudaStreamSynchronize", at(120), 65'000, {.correlation = correlation + 1});
  }
  return sketch.trace();
}

TEST(RecordingCost, OfAGraphIsForEachNodeInTheLaunchAndOnTheGpu) {
  const DrawnSteps graph(replays("cudaGraphLaunch"));
  ASSERT_EQ(graph.simulation.graph->graph_launches.size(), 5u);
  EXPECT_EQ(graph.simulation.graph->graph_launches[0].nodes.size(), 40u);
  EXPECT_EQ(graph.simulation.recorded.busy_ns, 80'000);
  // Of each node 300 ns are the recorder's.
  const Outcome& unprofiled = graph.simulation.unprofiled.outcome;
  EXPECT_EQ(unprofiled.busy_ns, 40 * 1'700);
  // 10 us of Python are 5, from launch to start 90 us are 10 (40 nodes of 2 us), the nodes 68, the wait returns after 5, and of
  // the last 15 us 30 % go.
  EXPECT_NEAR(static_cast<double>(unprofiled.step_ns), 5'000 + 10'000 + 68'000 + 5'000 + 10'500,
              100);
  const DrawnSteps other(replays("cudaLaunchKernel"));
  EXPECT_TRUE(other.simulation.graph->graph_launches.empty());
  EXPECT_EQ(other.simulation.unprofiled.outcome.busy_ns, 80'000);
}

// Half of 50 to 150 us is 50 us; 30 from 1,000 launches on, if the CPU has 80 of the path's 100 us.
TEST(RecordingCost, ItsErrorIsSmallerWithManyLaunchesOfABusyCpu) {
  Unprofiled many;
  many.shortest_ns = 50'000;
  many.longest_ns = 150'000;
  many.launches = 1'000;
  many.outcome.path.steps = 1;
  many.outcome.path.total_ns = 100'000;
  auto& cpu_ns = many.outcome.path.time_ns[static_cast<std::size_t>(PathKind::kHost)];
  cpu_ns = 80'000;
  EXPECT_EQ(many.recording_error_ns(), 30'000);
  cpu_ns = 79'999;
  EXPECT_EQ(many.recording_error_ns(), 50'000);
  cpu_ns = 100'000;
  many.launches = 999;
  EXPECT_EQ(many.recording_error_ns(), 50'000);
  EXPECT_EQ(DrawnSteps(replays("cudaGraphLaunch")).simulation.unprofiled.launches, 40);
}

TEST(RecordingCost, TheRangeHoldsTheEstimateAndTheSpeedOfCpuAndGpu) {
  const DrawnSteps drawn(replays("cudaGraphLaunch"));
  const Unprofiled& unprofiled = drawn.simulation.unprofiled;
  EXPECT_GE(unprofiled.longest_ns, unprofiled.outcome.step_ns);
  EXPECT_LE(unprofiled.shortest_ns, unprofiled.outcome.step_ns);
  EXPECT_GE(unprofiled.cpu_error_ns(), unprofiled.recording_error_ns());
  EXPECT_GT(unprofiled.error_ns(), unprofiled.cpu_error_ns());
}

// Steps of 1,000 us: a copy of 10 MB from pageable memory takes 900 us of them, and the CPU waits for it.
Trace pageable_copies(const char* devices) {
  Sketch sketch;
  sketch.metadata("deviceProperties", devices);
  for (int step = 0; step < 4; ++step) {
    const std::int64_t at = step * 1'000'000;
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, 1'000'000);
    sketch.op("aten::copy_", at, 960'000);
    sketch.runtime("cudaMemcpyAsync", at + 10'000, 940'000, {.correlation = step + 1});
    sketch.slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 30'000, 900'000,
                 {.correlation = step + 1, .bytes = 10'000'000});
  }
  return sketch.trace();
}

TEST(Change, PinAssumesTheLinkOfTheGpuWhereNoCopyIsPinned) {
  const DrawnSteps drawn(pageable_copies(
      R"([{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0}])"));
  const auto pin = predict(drawn.simulation, std::vector{*parse_change("pin")});
  ASSERT_TRUE(pin);
  // 0.86 x 16 lanes x 3.938 GB/s.
  EXPECT_EQ(pin->assumed, "54 GB/s");
  ASSERT_EQ(pin->notes.size(), 2u);
  EXPECT_NE(pin->notes[1].find("assumed: 54 GB/s"), std::string::npos);
  // 10 MB take 185 us, and the CPU no longer waits for them.
  EXPECT_LT(pin->after.step_ns, 260'000);
  const auto named = predict(drawn.simulation, std::vector{*parse_change("pin 50")});
  ASSERT_TRUE(named);
  EXPECT_EQ(named->assumed, "");
  EXPECT_EQ(named->notes.size(), 1u);
}

TEST(Change, PinAssumesNothingOfAnUnknownGpu) {
  const DrawnSteps drawn(pageable_copies("[]"));
  const auto pin = predict(drawn.simulation, std::vector{*parse_change("pin")});
  ASSERT_TRUE(pin);
  EXPECT_EQ(pin->assumed, "");
  EXPECT_NE(pin->notes.back().find("keep their time"), std::string::npos);
}

TEST(Change, FusesTheChainsThatItIsGiven) {
  // gemm, relu, tanh and add take 500, 250, 200 and 100 us. The last three become one of 250 us.
  ProgramSketch program;
  program.steps(4, [](ProgramSketch& p) {
    p.kernel("gemm", 500).kernel("relu", 250).kernel("tanh", 200).kernel("add", 100);
  });
  const DrawnSteps drawn(program.trace());
  EXPECT_EQ(drawn.simulation.recorded.step_ns, 1'050'000);
  Change fuse = *parse_change("fuse relu, tanh, add");
  for (const GpuWork& work : drawn.simulation.graph->works) {
    const std::string_view name = drawn.trace.name(work.slice);
    if (name == "relu") fuse.chains.emplace_back();
    if (name != "gemm") fuse.chains.back().push_back(work.slice);
  }
  const auto fused = predict(drawn.simulation, std::vector{fuse});
  ASSERT_TRUE(fused);
  EXPECT_EQ(fused->after.step_ns, 750'000);
}

TEST(Change, AReadableNameMeansAllVariantsOfAKernel) {
  ProgramSketch program;
  const std::string first =
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
      "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
  const std::string second =
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>, "
      "std::array<char*, 2ul> >(int, at::native::CUDAFunctorOnSelf_add<float>, std::array<char*, "
      "2ul>)";
  const std::string readable = names::readable_kernel_name(first);
  ASSERT_EQ(names::readable_kernel_name(second), readable);
  program.steps(4, [&](ProgramSketch& p) { p.kernel(first, 500).kernel(second, 250); });
  const DrawnSteps drawn(program.trace());
  EXPECT_EQ(drawn.step_ns({("speed " + readable + " 2x").c_str()}), 375'000);
  EXPECT_EQ(drawn.step_ns({("speed " + first + " 2x").c_str()}), 500'000);
}

}  // namespace
}  // namespace lanescope::simulate
