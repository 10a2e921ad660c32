#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// A step: a range "backward" with a kernel of 100 us and a wait for it, `pause` of Python in the first
// `paused` steps, a range "Optimizer.step" with a kernel of 50 us.
Trace drawn_hole(std::int64_t pause, int paused = 4) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().begin("backward").kernel("gemm", 100).wait().end();
    program.pass(step < paused ? pause : 5);
    program.begin("Optimizer.step").kernel("adam", 50).wait().end();
    program.end();
  }
  return program.trace();
}

// The wait for the CPU: 3 us until the wait's operator is over, 500 us of Python, 1 us of the call; the last
// microsecond before the kernel is launch latency.
TEST(PythonHoleTest, NamesTheRangesAroundIt) {
  const auto finding = find_by_rule(drawn_hole(500), "python-hole");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values.at(0).integer, us(500));
  EXPECT_EQ(finding->verdict.values.at(2).text, "backward");
  EXPECT_EQ(finding->verdict.values.at(3).text, "Optimizer.step");
  EXPECT_EQ(finding->at_stake_ns, us(504));
}

// Two nodes of one name with Python between them: their name once, without the engine's prefix.
TEST(PythonHoleTest, NamesNodesByTheirOperator) {
  constexpr char kNode[] = "autograd::engine::evaluate_function: MmBackward0";
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().begin_op(kNode).kernel("gemm", 100).wait().end().pass(600);
    program.begin_op(kNode).kernel("gemm", 50).wait().end().end();
  }
  const auto finding = find_by_rule(program.trace(), "python-hole");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.pattern,
            "The GPU waits for Python or other code without events, between one {} and the next");
  EXPECT_EQ(finding->brief.values.at(0).text, "MmBackward0");
}

TEST(PythonHoleTest, KnowsTheOptimizersOwnPython) {
  const auto brief = [](bool inside) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step().kernel("gemm", 100).wait();
      program.begin("Optimizer.step#AdamW.step").kernel("adam", 50).wait();
      if (!inside) program.end();
      program.pass(500).kernel("adam", 50).wait();
      if (inside) program.end();
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "python-hole");
    EXPECT_TRUE(finding);
    return finding ? finding->brief.pattern : "";
  };
  EXPECT_TRUE(brief(true).starts_with("The GPU waits for the optimizer"));
  EXPECT_TRUE(brief(false).starts_with("The GPU waits for Python or other code without events, "));
}

TEST(PythonHoleTest, KnowsAListThatBecomesATensor) {
  const auto action = [](std::string_view before) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step().pass(50).cpu_op(before, 5).pass(800);
      program.begin_op("aten::to").kernel("copy", 10).end().pass(50);
      program.kernel("gemm", 100).wait().end();
    }
    const auto finding = find_by_rule(program.trace(), "python-hole");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action("aten::empty").find("torch.from_numpy"), std::string::npos);
  EXPECT_EQ(action("aten::relu").find("torch.from_numpy"), std::string::npos);
}

// The frame of the call shows it: 600 us of it are holes, and the tensor that it makes has 64 numbers.
TEST(PythonHoleTest, NamesTheCallThatReadsAList) {
  const auto find = [](const char* frame) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step().pass(50);
      const std::int64_t start_us = program.cpu_us();
      program.pass(300).cpu_op("aten::empty", 5).pass(300);
      testing::Fields made;
      made.input_dims = "[[64], []]";
      made.input_types = "[\"long int\", \"\"]";
      program.begin_op("aten::to", made).kernel("copy", 10).end();
      program.sketch().slice("python_function", frame, ProgramSketch::at(start_us),
                             us(program.cpu_us() - start_us));
      program.kernel("gemm", 100).wait().end();
    }
    const auto finding = find_by_rule(program.trace(), "python-hole");
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
  };
  const Finding known = find("<built-in method tensor of type object at 0x7e>");
  EXPECT_TRUE(known.brief.pattern.starts_with("torch.tensor(a list) takes"));
  ASSERT_EQ(known.brief.values.size(), 2u);
  EXPECT_EQ(known.brief.values[1].integer, 64);
  EXPECT_FALSE(find("data.py(3): tensor").brief.pattern.starts_with("torch.tensor"));
}

// 150 us before aten::empty are no hole, but the first reading of the list. The hole is less than half of the wait.
TEST(PythonHoleTest, CountsTheFirstReadingOfAList) {
  const auto find = [](const char* maker) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step().cpu_op("aten::sort", 250).pass(150).cpu_op(maker, 5).pass(300);
      program.begin_op("aten::to").kernel("copy", 10).end().pass(50);
      program.kernel("gemm", 100).wait().end();
    }
    const auto finding = find_by_rule(program.trace(), "python-hole");
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
  };
  const Finding read = find("aten::empty"), other = find("aten::relu");
  EXPECT_EQ(read.at_stake_ns, other.at_stake_ns + us(150));
  EXPECT_EQ(read.spared_windows.size(), 2 * other.spared_windows.size());
}

TEST(PythonHoleTest, IsQuietAboutShortPauses) {
  EXPECT_FALSE(find_by_rule(drawn_hole(190), "python-hole"));
}

// The whole program with so many samples of its thread, all in one function.
Trace drawn_samples(std::int64_t samples) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().begin("backward").kernel("gemm", 100).wait().end();
    program.pass(500);
    program.begin("Optimizer.step").kernel("adam", 50).wait().end();
    program.end();
  }
  TraceBuilder& builder = program.sketch().builder();
  Scalar pid, tid;
  pid.number = 100;
  tid.is_text = true;
  tid.text = builder.intern("100 sampled");
  builder.args().begin();
  builder.args().add_int(builder.intern("Self samples"), ArgKey::kSelfSamples, samples);
  builder.args().add_json(builder.intern("Lines"), ArgKey::kSampleLines,
                          builder.intern("{\"14\": 3, \"16\": 9}"));
  const ArgsId args = builder.args().end();
  builder.add_slice(builder.thread_track(pid, tid), builder.category("python_sample"),
                    builder.intern("dataset.py(10): collate"), us(1000), us(4000), args);
  return program.trace();
}

// 400 samples at equal distances of 10 us, and in the three steady steps a hole of 500 us each.
TEST(PythonHoleTest, NamesTheFunctionThatSamplesShow) {
  const auto finding = find_by_rule(drawn_samples(400), "python-hole");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->action.values.at(0).text, "dataset.py(10): collate");
  const Sentence& line = finding->arithmetic.back();
  EXPECT_EQ(line.values.at(1).integer, 150);  // of as many: all samples are in that function
  EXPECT_EQ(line.values.at(2).integer, 150);
  EXPECT_EQ(line.values.at(4).integer, 16);
}

// 40 samples in 4000 us: 15 of them in the holes, which is too few.
TEST(PythonHoleTest, SaysNothingOnFewSamples) {
  const auto finding = find_by_rule(drawn_samples(40), "python-hole");
  ASSERT_TRUE(finding);
  EXPECT_EQ(
      finding->action.pattern,
      "Record with stacks to see its line. Prepare data ahead (workers, a thread), log and save "
      "every n steps");
}

// 500 us of code, then 300 us in which torch.cuda.empty_cache() frees memory, for which an operator asks again. Where the operator
// itself frees, or nothing is allocated again, it is not known to be that call.
TEST(PythonHoleTest, KnowsAnEmptiedCache) {
  const auto find = [](bool in_operator, bool allocates) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step().kernel("loss", 50).wait().pass(500);
      if (in_operator) program.begin_op("aten::empty");
      program.call("cudaFree", 200).call("cudaFree", 100);
      if (in_operator) program.end();
      program.begin_op("aten::mm");
      if (allocates) program.call("cudaMalloc", 20);
      program.kernel("gemm", 100).end().wait().end();
    }
    const auto finding = find_by_rule(program.trace(), "python-hole");
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
  };
  const Finding emptied = find(false, true), freed = find(true, true), unknown = find(false, false);
  EXPECT_TRUE(emptied.brief.pattern.starts_with("The GPU waits for torch.cuda.empty_cache()"));
  EXPECT_THAT(emptied.brief.pattern, ::testing::HasSubstr("once per step"));
  EXPECT_NE(emptied.action.pattern.find("gc.collect()"), std::string::npos);
  std::int64_t spared_ns = 0;
  for (const auto& window : emptied.spared_windows) spared_ns += window.length_ns();
  EXPECT_GE(spared_ns, 3 * us(795));  // three steady steps
  for (const Finding& other : {freed, unknown}) {
    EXPECT_EQ(other.brief.pattern.find("empty_cache"), std::string::npos);
    EXPECT_EQ(other.action.pattern.find("gc.collect()"), std::string::npos);
  }
}

// A pause in one step is for the rules about single steps.
TEST(PythonHoleTest, IsQuietAboutOneStep) {
  EXPECT_FALSE(find_by_rule(drawn_hole(500, 2), "python-hole"));
}

// Waiting for a batch has a name, and a rule.
TEST(PythonHoleTest, IsQuietAboutTheDataLoader) {
  ProgramSketch program;
  for (int step = 0; step < 4; ++step) {
    program.step().begin("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    program.pass(500).end();
    program.kernel("gemm", 100).wait().end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "python-hole"));
}

// No code of the program runs there.
TEST(PythonHoleTest, KnowsTheWayToAutogradsThread) {
  std::string action;  // of the first
  const auto brief = [&](const char* before) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().kernel("loss", 50).wait().pass(60).cpu_op(before, 10).pass(500);
      program.begin_op("autograd::engine::evaluate_function: MeanBackward0");
      program.kernel("mean_backward", 50).pass(100).end().wait().end();
    }
    const auto finding = find_by_rule(program.trace(), "python-hole");
    EXPECT_TRUE(finding);
    if (finding && action.empty()) action = finding->action.pattern;
    return finding ? finding->brief.pattern : "";
  };
  EXPECT_EQ(brief("aten::ones_like"), "The GPU waits while backward() wakes autograd's thread");
  EXPECT_TRUE(
      brief("aten::mean").starts_with("The GPU waits for Python or other code without events, "));
  EXPECT_NE(action.find("other threads of the program too"), std::string::npos);
}

// Fused already: with several groups they can be joined, with one nothing is left to change there.
TEST(PythonHoleTest, DoesNotAdviseAFusedOptimizerTwice) {
  const auto found = [](const char* op, int groups) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step().kernel("gemm", 100).wait();
      program.begin("Optimizer.step#AdamW.step").pass(500);
      for (int group = 0; group < groups; ++group) program.begin_op(op).kernel("adam", 50).end();
      program.wait().end().end();
    }
    return find_by_rule(program.trace(), "python-hole");
  };
  const auto foreach = found("aten::_foreach_add_", 1);
  ASSERT_TRUE(foreach);
  EXPECT_EQ(foreach->kind, FindingKind::kCost);
  EXPECT_NE(foreach->action.pattern.find("fused=True"), std::string::npos);
  const auto groups = found("aten::_fused_adamw_", 3);
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups->action.pattern, "It is fused: join groups of parameters with equal settings");
  const auto one = found("aten::_fused_adamw_", 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->kind, FindingKind::kWhere);
}

// Only torch's own Python is between the last node and the optimizer's range: nothing can be taken out.
// Of an optimizer that calls each tensor by itself, optimizer-loop says the same.
TEST(PythonHoleTest, LeavesALoopOverTensorsToAnotherRule) {
  const auto kind = [](int tensors) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step().kernel("gemm", 100).wait();
      program.begin("Optimizer.step#AdamW.step").pass(500);
      for (int i = 0; i < tensors; ++i) program.launch({.us = 2, .op = "aten::mul_"});
      program.wait().end().end();
    }
    const auto finding = find_by_rule(program.trace(), "python-hole");
    EXPECT_TRUE(finding);
    return finding ? finding->kind : FindingKind::kBound;
  };
  EXPECT_EQ(kind(32), FindingKind::kWhere);
  EXPECT_EQ(kind(4), FindingKind::kCost);
}

TEST(PythonHoleTest, TakesNothingOutBetweenBackwardAndTheOptimizer) {
  const auto kind = [](const char* frame) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().kernel("loss", 50).wait().pass(60);
      program.begin_op("autograd::engine::evaluate_function: MmBackward0");
      program.kernel("mm_backward", 50).end();
      const std::int64_t start_us = program.cpu_us();
      program.pass(500);
      program.sketch().slice("python_function", frame, ProgramSketch::at(start_us),
                             us(program.cpu_us() - start_us));
      program.begin("Optimizer.step#SGD.step").kernel("sgd", 50).pass(60).end().wait().end();
    }
    const auto finding = find_by_rule(program.trace(), "python-hole");
    return finding ? finding->kind : FindingKind::kNormal;
  };
  EXPECT_EQ(kind("train.py(30): tokens"), FindingKind::kCost);
  EXPECT_EQ(kind("torch/optim/optimizer.py(500): wrapper"), FindingKind::kWhere);
}

// Code after a read of several values may work on them: it cannot simply leave the step.
TEST(PythonHoleTest, KnowsThatCodeAfterAReadMayWorkOnIt) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().kernel("policy", 50);
    program.begin_op("aten::to").copy(5, 4096, "Memcpy DtoH (Device -> Pageable)");
    program.end().pass(600).cpu_op("aten::relu", 10);
    program.kernel("gemm", 50).wait().end();
  }
  const auto finding = find_by_rule(program.trace(), "python-hole");
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->action.pattern.starts_with("If it works on values just read"));
}

// With stacks, the function that fills the hole is named, not the layer after it.
TEST(PythonHoleTest, NamesTheFunctionThatFillsTheHole) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().kernel("loss", 50).wait().pass(60).cpu_op("aten::mean", 10);
    const std::int64_t start_us = program.cpu_us();
    program.pass(500);
    program.sketch().slice("python_function", "torch/nn/modules/module.py(2960): __repr__",
                           ProgramSketch::at(start_us), us(480));
    program.cpu_op("aten::layer_norm", 10).kernel("norm", 50).wait().end();
  }
  const auto finding = find_by_rule(program.trace(), "python-hole");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).text, "__repr__ (modules/module.py:2960)");
}

// The hole begins where the GPU runs out of work. A function that began `earlier` may be what fills it; one that is mostly
// elsewhere is not.
TEST(PythonHoleTest, NamesAFunctionThatBeganWhileTheGpuWorked) {
  const auto brief = [](std::int64_t earlier_us) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().kernel("loss", 2000);
      const std::int64_t start_us = program.cpu_us() + 2000 - earlier_us;
      program.pass(2500);
      program.sketch().slice("python_function", "transformers/trainer.py(4064): floating_point_ops",
                             ProgramSketch::at(start_us), us(earlier_us + 400));
      program.cpu_op("aten::layer_norm", 10).kernel("norm", 50).wait().end();
    }
    const auto finding = find_by_rule(program.trace(), "python-hole");
    EXPECT_TRUE(finding);
    return finding ? finding->brief.pattern : "";
  };
  EXPECT_EQ(brief(300), "The GPU waits for Python code, mostly in {}");
  EXPECT_NE(brief(900), "The GPU waits for Python code, mostly in {}");
}

// Four steps of `nerf.py(96): step`, in which aten::stack and aten::reshape come before a hole of 600 us. aten::stack ends 5 us before
// aten::reshape begins in the even steps, and 60 us before it in the odd ones. More than half of the function's time is elsewhere.
Finding hole_in_function(const char* after, bool has_callee) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().pass(2);
    const std::int64_t start_us = program.cpu_us();
    program.kernel("loss", 1000).wait().cpu_op("aten::stack", 40).pass(i % 2 == 0 ? 5 : 60);
    program.cpu_op("aten::reshape", 4);
    const std::int64_t hole_us = program.cpu_us();
    program.pass(600).cpu_op(after, 4).kernel("norm", 50).wait();
    program.sketch().slice("python_function", "nerf.py(96): step", ProgramSketch::at(start_us),
                           us(program.cpu_us() - start_us));
    if (has_callee)
      program.sketch().slice("python_function", "rays.py(7): choose",
                             ProgramSketch::at(hole_us + 100), us(200));
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "python-hole");
  EXPECT_TRUE(finding);
  return finding.value_or(Finding{});
}

// aten::stack is not around aten::reshape, so the place has the same name in all steps.
TEST(PythonHoleTest, NamesTheFunctionWhoseOwnCodeFillsTheHole) {
  const Finding array = hole_in_function("aten::lift_fresh", false);
  EXPECT_EQ(array.brief.pattern, "The GPU waits for code without events in {}, between {} and {}");
  ASSERT_EQ(array.brief.values.size(), 3u);
  EXPECT_EQ(array.brief.values[0].text, "step (nerf.py:96)");
  EXPECT_EQ(array.brief.values[1].text, "aten::reshape");
  EXPECT_TRUE(array.action.pattern.starts_with("It makes an array"));
  EXPECT_TRUE(array.names_cause);
  EXPECT_TRUE(hole_in_function("aten::mul", false)
                  .action.pattern.starts_with("It is the function's own code"));
}

// Another function takes a third of the hole.
TEST(PythonHoleTest, DoesNotBlameAFunctionForWhatItCalls) {
  const Finding called = hole_in_function("aten::lift_fresh", true);
  EXPECT_TRUE(called.action.pattern.starts_with("If it prepares data"));
  EXPECT_FALSE(called.names_cause);
}

// Thread 101 of process 100 launches, waits for the result, and then for 600 us without an event: for a request, perhaps.
TEST(PythonHoleTest, AWorkerThreadMayWaitForRequests) {
  const auto action = [](std::int64_t tid) {
    testing::Sketch sketch;
    for (std::int64_t i = 0; i < 6; ++i) {
      const std::int64_t at = i * us(1000);
      sketch.op("aten::gelu", at, us(20), {.tid = tid});
      sketch.runtime("cudaLaunchKernel", at + us(5), us(5), {.tid = tid, .correlation = 2 * i + 1});
      sketch.kernel("gelu", at + us(12), us(100), {.correlation = 2 * i + 1});
      sketch.op("aten::to", at + us(30), us(120), {.tid = tid});
      sketch.runtime("cudaMemcpyAsync", at + us(40), us(100),
                     {.tid = tid, .correlation = 2 * i + 2});
      sketch.slice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + us(113), us(20),
                   {.correlation = 2 * i + 2, .bytes = 4096});
    }
    const auto finding = find_by_rule(sketch.trace(), "python-hole");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_TRUE(action(101).starts_with("If this thread waits there for requests"));
  EXPECT_TRUE(action(100).starts_with("If it works on values just read"));
}

}  // namespace
}  // namespace lanescope::explain
