#include "lanescope/analysis/key_averages.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

KeyAverages averages(const Trace& trace, TableStyle style, KeyAveragesOptions options = {}) {
  options.style = style;
  auto result = compute_key_averages(trace, options);
  EXPECT_TRUE(result);
  return std::move(*result);
}

const KeyAverage& row(const KeyAverages& table, std::string_view name, bool on_device = false) {
  static const KeyAverage missing;
  for (const KeyAverage& each : table.rows)
    if (each.name == name && each.on_device == on_device) return each;
  ADD_FAILURE() << "no row " << name;
  return missing;
}

// One step: linear over addmm over one launch, whose kernel runs 5 ns. All ids agree.
Sketch one_linear() {
  return std::move(Sketch()
                       .annotation("ProfilerStep#3", 0, 1000, {.external_id = 1})
                       .op("aten::linear", 100, 400, {.external_id = 2})
                       .op("aten::addmm", 150, 300, {.external_id = 3})
                       .runtime("cudaLaunchKernel", 200, 100, {.external_id = 3, .correlation = 70})
                       .kernel("gemm", 600, 5, {.external_id = 3, .correlation = 70}));
}

// A row of an annotation on stream 7 as lanescope's recorder writes it.
void project(Sketch& sketch, std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
             std::string_view launches) {
  TraceBuilder& builder = sketch.builder();
  Scalar device, stream;
  stream.number = 7;
  builder.args().begin();
  builder.args().add_string(builder.intern("launches"), arg_key("launches"),
                            builder.intern(launches));
  const ArgsId args = builder.args().end();
  builder.add_slice(builder.stream_track(device, stream), builder.category("gpu_user_annotation"),
                    builder.intern(name), start_ns, dur_ns, args);
}

// Torch has no bar for an annotation whose work is all launched in inner ones; neither style counts
// the bar of backward work as a separate call.
TEST(KeyAveragesTest, BarsThatTorchDoesNotDrawAreNotInItsTable) {
  Sketch sketch = one_linear();
  project(sketch, "own", 599, 7, "own");
  project(sketch, "outer", 599, 7, "nested");
  project(sketch, "own", 800, 50, "backward");
  const Trace trace = sketch.trace();
  const KeyAverages torch = averages(trace, TableStyle::kTorch);
  EXPECT_EQ(row(torch, "own", true).count, 1);
  EXPECT_EQ(row(torch, "own", true).device_time_total_ns, 5);
  for (const KeyAverage& each : torch.rows) EXPECT_NE(each.name, "outer");
  const KeyAverages ours = averages(trace, TableStyle::kLanescope);
  EXPECT_EQ(row(ours, "own", true).count, 1);
  EXPECT_EQ(row(ours, "outer", true).device_time_total_ns, 5);
}

// No API call is recorded at all, but the trace itself says of one kernel that it came before.
TEST(KeyAveragesTest, WorkMarkedAsLaunchedBeforeTheWindowCountsInTorchStyleOnly) {
  Sketch sketch;
  sketch.op("aten::add", 0, 100, {.external_id = 1}).kernel("inside", 50, 5);
  TraceBuilder& builder = sketch.builder();
  Scalar device, stream;
  stream.number = 7;
  builder.args().begin();
  builder.args().add(builder.intern("launched before window"), ArgKey::kLaunchedBeforeWindow,
                     ArgType::kTrue);
  const ArgsId args = builder.args().end();
  builder.add_slice(builder.stream_track(device, stream), builder.category("kernel"),
                    builder.intern("early"), 10, 7, args);
  const Trace trace = sketch.trace();
  const KeyAverages ours = averages(trace, TableStyle::kLanescope);
  EXPECT_EQ(ours.corrections.unlaunched_count, 1u);
  EXPECT_EQ(ours.corrections.unlaunched_ns, 7);
  EXPECT_EQ(ours.device_busy_ns, 5);
  EXPECT_EQ(row(ours, "inside", true).count, 1);
  const KeyAverages torch = averages(trace, TableStyle::kTorch);
  EXPECT_EQ(torch.device_busy_ns, 12);
  EXPECT_EQ(row(torch, "early", true).count, 1);
}

// Launches and no kernel: the device was not recorded.
TEST(KeyAveragesTest, EveryLaunchTellsThatTheDeviceWasLeftOut) {
  for (const char* call : {"cudaLaunchKernel", "cudaLaunchCooperativeKernel"})
    EXPECT_EQ(averages(Sketch().runtime(call, 0, 5).trace(), TableStyle::kTorch).device, "")
        << call;
  EXPECT_EQ(averages(Sketch().runtime("cudaGetDevice", 0, 5).trace(), TableStyle::kTorch).device,
            "cuda");
}

TEST(KeyAveragesTest, TotalsRunDownTheTreeInBothStyles) {
  const Trace trace = one_linear().trace();
  for (const TableStyle style : {TableStyle::kTorch, TableStyle::kLanescope}) {
    const KeyAverages table = averages(trace, style);
    EXPECT_EQ(table.device, "cuda");
    EXPECT_EQ(row(table, "ProfilerStep*").self_cpu_time_total_ns, 600);
    EXPECT_EQ(row(table, "aten::linear").cpu_time_total_ns, 400);
    EXPECT_EQ(row(table, "aten::linear").self_cpu_time_total_ns, 100);
    EXPECT_EQ(row(table, "aten::linear").device_time_total_ns, 5);
    EXPECT_EQ(row(table, "aten::linear").self_device_time_total_ns, 0);
    EXPECT_EQ(row(table, "aten::addmm").self_device_time_total_ns, 5);
    EXPECT_EQ(row(table, "cudaLaunchKernel").cpu_time_total_ns, 100);
    EXPECT_EQ(row(table, "gemm", true).device_time_total_ns, 5);
    EXPECT_FALSE(row(table, "aten::addmm").is_top_level);
    EXPECT_TRUE(row(table, "ProfilerStep*").is_top_level);
  }
}

// The bar spans [599, 701) with 5 + 10 ns of work inside; torch counts the bar without the tick
// at each end.
TEST(KeyAveragesTest, AnnotationsOnTheDeviceShowTheirBarInTorchStyleAndTheirWorkInLanescopeStyle) {
  const Trace trace = std::move(one_linear()
                                    .kernel("gemm", 690, 10, {.external_id = 3, .correlation = 70})
                                    .gpu_annotation("ProfilerStep#3", 599, 102, {.external_id = 1}))
                          .trace();
  EXPECT_EQ(
      row(averages(trace, TableStyle::kTorch), "ProfilerStep*", true).self_device_time_total_ns,
      100);
  const KeyAverages ours = averages(trace, TableStyle::kLanescope);
  EXPECT_EQ(row(ours, "ProfilerStep*", true).device_time_total_ns, 15);
  EXPECT_EQ(row(ours, "ProfilerStep*", true).self_device_time_total_ns, 0);
  EXPECT_EQ(ours.annotation_span_ns, 100);
  EXPECT_EQ(ours.annotation_busy_ns, 15);
}

TEST(KeyAveragesTest, OverheadClaimsTheKernelsOfTheOperatorOpenAtItsStartInTorchStyleOnly) {
  const Trace trace = std::move(one_linear().overhead("Buffer Flush", 310, 50)).trace();
  const KeyAverages torch = averages(trace, TableStyle::kTorch);
  EXPECT_EQ(row(torch, "Buffer Flush").device_time_total_ns, 5);
  EXPECT_EQ(row(torch, "aten::linear").device_time_total_ns,
            10);  // the same kernel twice
  const KeyAverages ours = averages(trace, TableStyle::kLanescope);
  EXPECT_EQ(row(ours, "Buffer Flush").device_time_total_ns, 0);
  EXPECT_EQ(row(ours, "aten::linear").device_time_total_ns, 5);
  EXPECT_EQ(row(ours, "aten::addmm").self_cpu_time_total_ns, 300 - 100 - 50);
  EXPECT_EQ(ours.corrections.overhead_claim_count, 1u);
  EXPECT_EQ(ours.corrections.overhead_claim_ns, 5);
}

TEST(KeyAveragesTest, WarmUpWorkIsLeftOutOfLanescopeStyleAndCounted) {
  const Trace trace = std::move(one_linear()
                                    .kernel("leaked", 10, 30, {.correlation = 2})
                                    .runtime("cudaLaunchKernel", -50, 10, {.correlation = 3})
                                    .kernel("before the step", 50, 40, {.correlation = 3}))
                          .trace();
  EXPECT_EQ(row(averages(trace, TableStyle::kTorch), "leaked", true).count, 1);
  const KeyAverages ours = averages(trace, TableStyle::kLanescope);
  for (const KeyAverage& each : ours.rows) EXPECT_NE(each.name, "leaked");
  EXPECT_EQ(ours.corrections.unlaunched_count, 1u);
  EXPECT_EQ(ours.corrections.unlaunched_ns, 30);
  EXPECT_EQ(ours.corrections.before_first_step_count, 1u);
  EXPECT_EQ(ours.corrections.before_first_step_ns, 40);
  EXPECT_EQ(ours.device_busy_ns, 5);
}

TEST(KeyAveragesTest, WithoutAnyRecordedLaunchNothingIsLeftOut) {
  const Trace trace =
      std::move(Sketch().op("op", 0, 10, {.external_id = 1}).kernel("k", 20, 5, {.external_id = 1}))
          .trace();
  const KeyAverages ours = averages(trace, TableStyle::kLanescope);
  EXPECT_EQ(row(ours, "k", true).count, 1);
  EXPECT_EQ(row(ours, "op").device_time_total_ns, 5);
}

// mean over mean as its only child is one call, to a fixpoint; with a second child both stay.
TEST(KeyAveragesTest, AnOnlyChildOfTheSameNameIsTheSameCall) {
  Trace trace =
      std::move(Sketch().op("mean", 0, 100).op("mean", 10, 80).op("mean", 20, 60).op("sum", 30, 10))
          .trace();
  EXPECT_EQ(row(averages(trace, TableStyle::kTorch), "mean").count, 1);
  EXPECT_EQ(row(averages(trace, TableStyle::kTorch), "mean").self_cpu_time_total_ns, 90);
  trace = std::move(Sketch().op("mean", 0, 100).op("mean", 10, 20).op("sum", 40, 10)).trace();
  EXPECT_EQ(row(averages(trace, TableStyle::kTorch), "mean").count, 2);
}

// In torch, the child's kernels replace the parent's; lanescope keeps both.
TEST(KeyAveragesTest, MergedCallsKeepTheKernelsOfBothInLanescopeStyle) {
  const Trace trace =
      std::move(Sketch()
                    .op("f", 0, 100, {.external_id = 1})
                    .op("f", 10, 50, {.external_id = 2})
                    .runtime("inner", 20, 5, {.external_id = 2, .correlation = 5})
                    .kernel("k", 200, 3, {.external_id = 2, .correlation = 5})
                    .runtime("outer", 70, 5, {.tid = 300, .external_id = 1, .correlation = 6})
                    .kernel("k", 210, 4, {.external_id = 1, .correlation = 5}))
          .trace();
  EXPECT_EQ(row(averages(trace, TableStyle::kLanescope), "f").device_time_total_ns, 7);
}

// Records at 20 (own thread) and 30 (another thread) lie inside the operator's time; one at
// 500 in nobody's.
TEST(KeyAveragesTest, MemoryOfOtherThreadsCountsInTorchStyleOnly) {
  const Trace trace = std::move(Sketch()
                                    .op("op", 0, 100)
                                    .op("child", 10, 15)
                                    .memory(20, 1000)
                                    .memory(30, 64, 0, 200)
                                    .memory(500, -1000)
                                    .memory(40, 4096, 1))
                          .trace();
  const KeyAverages torch = averages(trace, TableStyle::kTorch);
  EXPECT_TRUE(torch.profile_memory);
  EXPECT_EQ(row(torch, "op").cpu_memory_bytes, 1064);
  EXPECT_EQ(row(torch, "op").self_cpu_memory_bytes, 64);
  EXPECT_EQ(row(torch, "op").device_memory_bytes, 4096);
  EXPECT_EQ(row(torch, "[memory]").self_cpu_memory_bytes, -1000);
  const KeyAverages ours = averages(trace, TableStyle::kLanescope);
  EXPECT_EQ(row(ours, "op").cpu_memory_bytes, 1000);
  EXPECT_EQ(row(ours, "[memory]").count, 2);
  EXPECT_EQ(ours.corrections.other_thread_memory_count, 1u);
}

TEST(KeyAveragesTest, GroupsByShapeOverloadAndStack) {
  const Trace trace =
      std::move(Sketch()
                    .op("aten::mm", 0, 10, {.input_dims = "[[2,2]]", .call_stack = "a;b;c;"})
                    .op("aten::mm", 20, 10, {.input_dims = "[[2,2]]", .call_stack = "a;x;c;"})
                    .op("aten::mm", 40, 10,
                        {.input_dims = "[[3,3]]", .call_stack = "a;b;", .overload = "out"}))
          .trace();
  EXPECT_EQ(averages(trace, TableStyle::kTorch).rows.size(), 1u);
  EXPECT_EQ(averages(trace, TableStyle::kTorch, {.group_by_input_shape = true}).rows.size(), 2u);
  EXPECT_EQ(
      averages(trace, TableStyle::kTorch, {.group_by_overload_name = true}).rows[1].overload_name,
      "out");
  EXPECT_EQ(averages(trace, TableStyle::kTorch, {.group_by_stack_n = 1}).rows.size(), 1u);
  const KeyAverages stacks = averages(trace, TableStyle::kTorch, {.group_by_stack_n = 2});
  ASSERT_EQ(stacks.rows.size(), 2u);
  EXPECT_EQ(stacks.rows[0].stack, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(compute_key_averages(trace, {.group_by_stack_n = -1}));
}

// A Python frame on thread 100, as torch 2.11 writes it with verbose.
void python_frame(Sketch& sketch, std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                  std::int64_t id, std::int64_t parent) {
  TraceBuilder& builder = sketch.builder();
  Scalar thread;
  thread.number = 100;
  builder.args().begin();
  builder.args().add_int(builder.intern("Python thread"), arg_key("Python thread"), 1);
  builder.args().add_int(builder.intern("Python id"), arg_key("Python id"), id);
  if (parent != 0)
    builder.args().add_int(builder.intern("Python parent id"), arg_key("Python parent id"), parent);
  const ArgsId args = builder.args().end();
  builder.add_slice(builder.thread_track(thread, thread), builder.category("python_function"),
                    builder.intern(name), start_ns, dur_ns, args);
}

using Stack = std::vector<std::string>;

// main [0, 1000) calls step [100, 500), which runs aten::mm; what the file has no stacks of gets
// those that torch finds.
TEST(KeyAveragesTest, KernelsAndCallsHaveTheStackOfTheirOperatorOrOfTheMainThread) {
  Sketch sketch;
  sketch.op("aten::mm", 150, 200, {.external_id = 2, .call_stack = "step;main;"})
      .runtime("cudaLaunchKernel", 200, 50, {.external_id = 2, .correlation = 70})
      .runtime("cudaDeviceSynchronize", 700, 100, {.correlation = 71})
      .kernel("gemm", 600, 5, {.external_id = 2, .correlation = 70})
      .kernel("early", 300, 5, {.correlation = 72})
      .kernel("late", 900, 5, {.correlation = 73});
  python_frame(sketch, "main", 0, 1000, 1, 0);
  python_frame(sketch, "step", 100, 400, 2, 1);
  const KeyAverages table =
      averages(std::move(sketch).trace(), TableStyle::kTorch, {.group_by_stack_n = 5});
  EXPECT_EQ(table.rows.size(), 6u) << "Python frames are no rows, whatever they carry";
  EXPECT_EQ(row(table, "cudaLaunchKernel").stack, (Stack{"step", "main"}));
  EXPECT_EQ(row(table, "gemm", true).stack, (Stack{"step", "main"}));
  EXPECT_EQ(row(table, "cudaDeviceSynchronize").stack, Stack{"main"});
  EXPECT_EQ(row(table, "early", true).stack, (Stack{"step", "main"})) << "where main was then";
  EXPECT_EQ(row(table, "late", true).stack, Stack{"main"});
}

// The call of another thread lasts from before step() until 240, and closes step() there.
TEST(KeyAveragesTest, AnUnlinkedCallThatEndsWithinAFrameClosesItAsInTorch) {
  for (const bool is_other : {false, true}) {
    Sketch sketch;
    sketch.op("aten::mm", 110, 10, {.external_id = 2, .call_stack = "step;main;"});
    if (is_other) sketch.runtime("cudaMalloc", 90, 150, {.tid = 200, .correlation = 70});
    sketch.runtime("cudaFree", 300, 10, {.correlation = 71});
    python_frame(sketch, "main", 0, 1000, 1, 0);
    python_frame(sketch, "step", 100, 400, 2, 1);
    const KeyAverages table =
        averages(std::move(sketch).trace(), TableStyle::kTorch, {.group_by_stack_n = 5});
    EXPECT_EQ(row(table, "cudaFree").stack, is_other ? Stack{"main"} : (Stack{"step", "main"}));
  }
}

// lanescope's own file has lines of calls as "Call stack". main [0, 1000) calls step [100, 500).
TEST(KeyAveragesTest, OwnOperatorsHaveTheFramesAroundThemInTorchsStyle) {
  const auto stacks = [](TableStyle style) {
    Sketch sketch;
    sketch.metadata("lanescope_version", "\"1\"")
        .annotation("range", 50, 100)  // ends within step()
        .op("aten::mm", 200, 100, {.external_id = 2, .call_stack = "a.py(7): step;a.py(9): main;"})
        .runtime("cudaLaunchKernel", 210, 20, {.external_id = 2, .correlation = 70})
        .op("aten::add", 600, 10, {.external_id = 3, .call_stack = "a.py(9): main;"})
        .op("aten::t", 2000, 10, {.external_id = 4, .call_stack = "b.py(3): later;"})
        .op("aten::neg", 700, 10, {.external_id = 5});
    python_frame(sketch, "main", 0, 1000, 1, 0);
    python_frame(sketch, "step", 100, 400, 2, 1);
    const KeyAverages table = averages(std::move(sketch).trace(), style, {.group_by_stack_n = 5});
    EXPECT_EQ(table.rows.size(), 6u) << "Python frames are no rows";
    return std::vector<Stack>{row(table, "aten::mm").stack, row(table, "cudaLaunchKernel").stack,
                              row(table, "aten::add").stack, row(table, "aten::t").stack,
                              row(table, "aten::neg").stack};
  };
  const Stack step_main{"step", "main"}, main{"main"}, later{"b.py(3): later"}, none;
  EXPECT_EQ(stacks(TableStyle::kTorch),
            (std::vector<Stack>{step_main, step_main, main, later, none}));
  const Stack lines{"a.py(7): step", "a.py(9): main"}, line{"a.py(9): main"};
  EXPECT_EQ(stacks(TableStyle::kLanescope), (std::vector<Stack>{lines, lines, line, later, none}));
}

// main [0, 1000) calls backward [300, 900); thread 200 runs the nodes meanwhile, without any frame.
TEST(KeyAveragesTest, OwnBackwardRowsOfAnotherThreadHaveTheFramesThatWaitForThem) {
  const auto stacks = [](TableStyle style, bool is_own) {
    Sketch sketch;
    if (is_own) sketch.metadata("lanescope_version", "\"1\"");
    sketch
        .op("aten::mul", 100, 50, {.external_id = 2, .sequence = 5, .call_stack = "a.py(9): main;"})
        .op("autograd::engine::evaluate_function: MulBackward0", 400, 200,
            {.tid = 200, .external_id = 3, .sequence = 5, .fwd_thread = 1})
        .op("MulBackward0", 410, 50, {.tid = 200, .external_id = 4, .sequence = 5, .fwd_thread = 1})
        .op("aten::neg", 420, 10, {.tid = 200, .external_id = 5})
        .op("aten::sum", 500, 20, {.tid = 200, .external_id = 6})
        .runtime("cudaLaunchKernel", 505, 5, {.tid = 200, .external_id = 6, .correlation = 70})
        .op("aten::abs", 700, 20, {.tid = 200, .external_id = 7});  // not inside a node
    python_frame(sketch, "main", 0, 1000, 1, 0);
    python_frame(sketch, "backward", 300, 600, 2, 1);
    const KeyAverages table = averages(std::move(sketch).trace(), style, {.group_by_stack_n = 5});
    return std::vector<Stack>{row(table, "autograd::engine::evaluate_function: MulBackward0").stack,
                              row(table, "MulBackward0").stack,
                              row(table, "aten::neg").stack,
                              row(table, "aten::sum").stack,
                              row(table, "cudaLaunchKernel").stack,
                              row(table, "aten::abs").stack};
  };
  const Stack waits{"backward", "main"}, forward{"main"}, none;
  EXPECT_EQ(stacks(TableStyle::kTorch, true),
            (std::vector<Stack>{waits, forward, forward, waits, waits, none}));
  const Stack line{"a.py(9): main"};
  EXPECT_EQ(stacks(TableStyle::kLanescope, true)[0], none) << "no Python line called it";
  EXPECT_EQ(stacks(TableStyle::kTorch, false)[0], none) << "torch's files say it themselves";
}

// As above; the row of a node that gathers gradients names no forward thread.
TEST(KeyAveragesTest, OwnRowsThatGatherGradientsHaveTheFramesOfTheOnlyForwardThread) {
  constexpr const char* kNode =
      "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";
  const auto stacks = [](const char* waiting, bool two_forward_threads) {
    Sketch sketch;
    sketch.metadata("lanescope_version", "\"1\"")
        .op("aten::mul", 100, 50, {.external_id = 2, .sequence = 5, .call_stack = "a.py(9): main;"})
        .op("MulBackward0", 410, 50, {.tid = 200, .external_id = 4, .sequence = 5, .fwd_thread = 1})
        .op(kNode, 500, 50, {.tid = 200, .external_id = 5})
        .op("torch::autograd::AccumulateGrad", 510, 30, {.tid = 200, .external_id = 6});
    if (two_forward_threads)
      sketch.op("aten::mul", 100, 50, {.tid = 300, .external_id = 7, .sequence = 6})
          .op("MulBackward0", 470, 10,
              {.tid = 200, .external_id = 8, .sequence = 6, .fwd_thread = 2});
    python_frame(sketch, "main", 0, 1000, 1, 0);
    python_frame(sketch, waiting, 300, 600, 2, 1);
    const KeyAverages table =
        averages(std::move(sketch).trace(), TableStyle::kTorch, {.group_by_stack_n = 5});
    return std::vector<Stack>{row(table, kNode).stack,
                              row(table, "torch::autograd::AccumulateGrad").stack};
  };
  constexpr const char* kCall =
      "<built-in method run_backward of torch._C._EngineBase object at 0x1>";
  const Stack waits{kCall, "main"}, none;
  EXPECT_EQ(stacks(kCall, false), (std::vector<Stack>{waits, none})) << "torch gives the node none";
  EXPECT_EQ(stacks("sleep", false)[0], none) << "nobody waits for it there";
  EXPECT_EQ(stacks(kCall, true)[0], none) << "either thread may have called it";
}

// step [100, 500) has the range; the GPU runs its work while main is elsewhere.
TEST(KeyAveragesTest, AnOwnRangeOnTheDeviceHasTheStackOfTheRange) {
  for (const bool is_own : {false, true}) {
    Sketch sketch;
    if (is_own) sketch.metadata("lanescope_version", "\"1\"");
    sketch.annotation("range", 150, 100, {.external_id = 2, .call_stack = "step;main;"})
        .kernel("gemm", 700, 5, {.external_id = 3, .correlation = 70})
        .gpu_annotation("range", 699, 7, {.external_id = 2});
    python_frame(sketch, "main", 0, 1000, 1, 0);
    python_frame(sketch, "step", 100, 400, 2, 1);
    const KeyAverages table =
        averages(std::move(sketch).trace(), TableStyle::kTorch, {.group_by_stack_n = 5});
    EXPECT_EQ(row(table, "range", true).stack, is_own ? (Stack{"step", "main"}) : Stack{"main"});
  }
}

TEST(KeyAveragesTest, LaunchesWithoutASingleKernelWereRecordedWithoutTheDevice) {
  const auto device = [](std::string_view call, TableStyle style) {
    Sketch sketch;
    sketch.op("aten::mm", 0, 100, {.external_id = 2}).runtime(call, 10, 20, {.correlation = 7});
    return averages(std::move(sketch).trace(), style).device;
  };
  EXPECT_EQ(device("cudaLaunchKernel", TableStyle::kTorch), "");
  EXPECT_EQ(device("cudaGraphLaunch", TableStyle::kTorch), "");
  EXPECT_EQ(device("cudaMalloc", TableStyle::kTorch), "cuda") << "nothing was launched: unknown";
  EXPECT_EQ(device("cudaLaunchKernel", TableStyle::kLanescope), "cuda");
}

TEST(KeyAveragesTest, OverloadsWrittenIntoTheNameAreTakenApart) {
  const Trace trace = std::move(Sketch()
                                    .op("aten::add.Tensor", 0, 10)
                                    .op("aten::add", 20, 10)
                                    .annotation("v1.2::x.y", 40, 1))
                          .trace();
  const KeyAverages table = averages(trace, TableStyle::kTorch);
  EXPECT_EQ(row(table, "aten::add").count, 2);
  EXPECT_EQ(row(table, "v1.2::x.y").count, 1);
}

TEST(KeyAveragesTest, NamesAreDemangledAndBookkeepingIsHidden) {
  constexpr std::string_view kNoText("Pi\0b", 4);  // of which the demangler would read "Pi"
  const Trace trace = std::move(Sketch()
                                    .op("_Z3addii", 0, 10)
                                    .op("Pi", 20, 10)
                                    .op("aten::is_leaf", 40, 10)
                                    .op(std::string(kNoText), 60, 10))
                          .trace();
  const KeyAverages table = averages(trace, TableStyle::kTorch);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].name, "add(int, int)");
  EXPECT_EQ(table.rows[1].name, "int*");
  EXPECT_EQ(table.rows[2].name, kNoText);
}

// copy_ [0, 100) holds copy_ [10, 60), which holds copy_ [20, 30), next to another child each; on
// another thread there is one of 40. All calls together are 200 long, but only 140 of two threads.
TEST(KeyAveragesTest, CallsInsideCallsOfTheirRowAreOneInTheUnion) {
  const Trace trace = std::move(Sketch()
                                    .op("aten::copy_", 0, 100)
                                    .op("aten::copy_", 10, 50)
                                    .op("aten::copy_", 20, 10)
                                    .op("aten::empty", 40, 5)
                                    .op("aten::empty", 70, 5)
                                    .op("aten::copy_", 20, 40, {.tid = 200}))
                          .trace();
  const auto table = compute_key_averages(trace, {.style = TableStyle::kLanescope});
  ASSERT_TRUE(table);
  EXPECT_EQ(row(*table, "aten::copy_").cpu_time_total_ns, 200);
  EXPECT_EQ(row(*table, "aten::copy_").cpu_time_union_ns, 140);
  EXPECT_EQ(row(*table, "aten::empty").cpu_time_union_ns, 10);
}

// The window is [0, 100); the kernels of two devices end at 400 and 300.
TEST(KeyAveragesTest, TheWindowOfTheDevicesHoldsAllTheirWork) {
  const Trace trace = std::move(Sketch()
                                    .slice("Trace", "PyTorch Profiler (0)", 0, 100)
                                    .runtime("cudaLaunchKernel", 10, 5, {.correlation = 1})
                                    .runtime("cudaLaunchKernel", 20, 5, {.correlation = 2})
                                    .kernel("a", 50, 350, {.correlation = 1})
                                    .kernel("b", 50, 250, {.device = 1, .correlation = 2}))
                          .trace();
  const auto table = compute_key_averages(trace, {.style = TableStyle::kLanescope});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->window_ns, 100);
  EXPECT_EQ(table->device_window_ns, 400);
  EXPECT_EQ(table->device_count, 2);
  EXPECT_EQ(table->device_busy_ns, 600);
}

TEST(KeyAveragesTest, AnEmptyTraceHasNoRows) {
  EXPECT_TRUE(averages(Sketch().trace(), TableStyle::kTorch).rows.empty());
}

}  // namespace
}  // namespace lanescope::analysis
