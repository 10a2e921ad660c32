#include "lanescope/analysis/python_flame.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "lanescope/model/child_process.h"
#include "lanescope/testing/sampled_slice.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

// A slice of samples on the track of thread 7.
void add_samples(Sketch& sketch, const char* name, std::int64_t start, std::int64_t dur,
                 std::int64_t samples, std::int64_t self, std::int64_t thread = 7,
                 std::int64_t process = 100) {
  testing::add_sampled_slice(sketch.builder(), {.process = process,
                                                .thread = thread,
                                                .function = name,
                                                .start_ns = start,
                                                .dur_ns = dur,
                                                .samples = samples,
                                                .self = self});
}

std::map<std::string, std::pair<std::int64_t, std::int64_t>> by_function(const Trace& trace,
                                                                         const PythonFlame& flame) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> out;
  for (const FlameNode& node : flame.nodes) {
    auto& [self, total] = out[std::string(trace.text(node.function))];
    self += node.self;
    total += node.total;
  }
  return out;
}

// main has 10 samples in 1000 ns: 4 in f (100 to 500), 2 in g (700 to 900), 4 of its own.
Sketch drawn() {
  Sketch sketch;
  add_samples(sketch, "main", 0, 1000, 10, 4);
  add_samples(sketch, "f", 100, 400, 4, 4);
  add_samples(sketch, "g", 700, 200, 2, 2);
  return sketch;
}

TEST(PythonFlameTest, SamplesCountForTheInnermostFunction) {
  const Trace trace = drawn().trace();
  const auto flame = compute_python_flame(trace);
  ASSERT_TRUE(flame) << flame.error().message;
  EXPECT_EQ(flame->source, FlameSource::kSamples);
  EXPECT_EQ(flame->total, 10);
  const auto found = by_function(trace, *flame);
  EXPECT_EQ(found.at("main"), std::pair(std::int64_t{4}, std::int64_t{10}));
  EXPECT_EQ(found.at("f"), std::pair(std::int64_t{4}, std::int64_t{4}));
  EXPECT_EQ(flame->threads, std::vector<std::int64_t>{7});
}

// The same stack in the program and in a worker: two, and the worker's is below its process.
TEST(PythonFlameTest, StacksOfAChildProcessAreBelowItsName) {
  Sketch sketch;
  add_samples(sketch, "main", 0, 1000, 10, 10);
  add_samples(sketch, "main", 0, 1000, 3, 3, 8, 200);
  TraceBuilder& builder = sketch.builder();
  Scalar pid;
  pid.number = 200;
  builder.set_process_name(pid, builder.intern("DataLoader worker 200"));
  builder.set_process_labels(pid, builder.intern(kChildProcessLabel));
  const Trace trace = sketch.trace();
  const auto flame = compute_python_flame(trace);
  ASSERT_TRUE(flame) << flame.error().message;
  ASSERT_EQ(flame->nodes.size(), 3u);
  EXPECT_EQ(flame->total, 13);
  EXPECT_EQ(by_function(trace, *flame).at("DataLoader worker 200"),
            std::pair(std::int64_t{0}, std::int64_t{3}));
  FlameOptions options;
  options.thread = 8;
  EXPECT_EQ(compute_python_flame(trace, options)->total, 3);
}

TEST(PythonFlameTest, OnlySamplesWhileTheGpuIsIdleCount) {
  Sketch sketch = drawn();
  sketch.kernel("a", -100, 250).kernel("b", 600, 1000);  // idle from 150 to 600
  const Trace trace = sketch.trace();
  FlameOptions options;
  options.gpu_idle = true;
  const auto flame = compute_python_flame(trace, options);
  ASSERT_TRUE(flame) << flame.error().message;
  // f's samples are at 150, 250, 350 and 450. main's self time is 0 to 100, 500 to 700 and 900 to
  // 1000: its samples are 50, 150, 250 and 350 into it, at 50, 550, 650 and 950.
  const auto found = by_function(trace, *flame);
  EXPECT_EQ(found.at("f").first, 4);
  EXPECT_EQ(found.at("main").first, 1);
  EXPECT_EQ(found.at("g").first, 0);
  EXPECT_EQ(flame->total, 5);
  EXPECT_EQ(flame->available, 10);
}

TEST(PythonFlameTest, AStepAndAThreadCanBeChosen) {
  Sketch sketch = drawn();
  add_samples(sketch, "other", 0, 1000, 8, 8, 9);
  sketch.annotation("ProfilerStep#3", 0, 300).annotation("ProfilerStep#4", 300, 700);
  sketch.builder().add_step(3, 4);
  sketch.builder().add_step(4, 5);
  const Trace trace = sketch.trace();
  FlameOptions options;
  options.step = 3;
  options.thread = 7;
  const auto flame = compute_python_flame(trace, options);
  ASSERT_TRUE(flame) << flame.error().message;
  EXPECT_EQ(flame->total, 3);  // main at 50, f at 150 and 250
  EXPECT_EQ(flame->threads, (std::vector<std::int64_t>{7, 9}));
  options.step = 5;
  EXPECT_EQ(compute_python_flame(trace, options).error().message,
            "--step: expected a step from 3 to 4, found 5");
  options = {};
  options.thread = 8;
  EXPECT_EQ(compute_python_flame(trace, options).error().message,
            "--thread: expected one of 7, 9, found 8");
}

TEST(PythonFlameTest, RecordedCallsCountTheirSelfTime) {
  Sketch sketch;
  sketch.slice("python_function", "main", 0, 1000).slice("python_function", "f", 100, 400);
  sketch.kernel("a", -100, 400).kernel("b", 600, 1000);  // idle from 300 to 600
  const Trace trace = sketch.trace();
  const auto flame = compute_python_flame(trace);
  ASSERT_TRUE(flame) << flame.error().message;
  EXPECT_EQ(flame->source, FlameSource::kCalls);
  EXPECT_EQ(by_function(trace, *flame).at("main"),
            std::pair(std::int64_t{600}, std::int64_t{1000}));
  FlameOptions options;
  options.gpu_idle = true;
  const auto idle = compute_python_flame(trace, options);
  EXPECT_EQ(by_function(trace, *idle).at("f").first, 200);
  EXPECT_EQ(by_function(trace, *idle).at("main").first, 100);
}

TEST(PythonFlameTest, ATraceWithoutStacksSaysHowToGetThem) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 10);
  const Trace trace = sketch.trace();
  EXPECT_EQ(compute_python_flame(trace).error().message,
            "expected Python stacks, found neither samples nor calls; record with --sample-python "
            "(samples) or --stack (calls)");
}

}  // namespace
}  // namespace lanescope::analysis
