#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_lock_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// A launch takes the CPU 10 us, of which the GPU works 1: busy 10 %, waiting for the CPU the rest.
TEST(HostBoundTest, SpeaksWhenTheGpuWaitsForLaunches) {
  const auto finding = find_by_rule(loop(4, 10, {.us = 1}).trace(), "host-bound");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kBound);
  // Three steps of 100 us, 10 of them work.
  EXPECT_EQ(finding->verdict.values[0].integer, 100'000);
  EXPECT_EQ(finding->verdict.values[1].integer, 10'000);
  EXPECT_EQ(finding->at_stake_ns, 90'000);
}

// A loop that sleeps until its batch is there, or computes.
TEST(HostBoundTest, KnowsAProgramThatSleeps) {
  const auto action = [](std::string_view frame) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      program.sketch().slice("python_function", frame, ProgramSketch::at(program.cpu_us()),
                             290'000);
      program.pass(300);
      for (int k = 0; k < 10; ++k) program.launch({.us = 5});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "host-bound");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action("<built-in function sleep>").find("queue.get()"), std::string::npos);
  EXPECT_NE(action("<built-in function sleep>").find("keeps a pace"), std::string::npos);
  EXPECT_EQ(action("<built-in function sorted>").find("queue.get()"), std::string::npos);
}

// One sample a microsecond. In each of the three steady steps the GPU waits 90 us, in 20 of which the next
// kernel was launched already: 70 us of the thread's time count.
TEST(HostBoundTest, NamesThePythonFunctionOfTheWaits) {
  ProgramSketch program = loop(4, 10, {.us = 1});
  sampled(program, {.function = "train.py(1): step", .self = 30'000});
  const auto finding = find_by_rule(program.trace(), "host-bound");
  ASSERT_TRUE(finding);
  const auto line = std::find_if(
      finding->arithmetic.begin(), finding->arithmetic.end(), [](const Sentence& each) {
        return each.pattern.starts_with("samples of the launching thread's Python stack");
      });
  ASSERT_NE(line, finding->arithmetic.end());
  EXPECT_NEAR(static_cast<double>(line->values.at(1).integer), 210, 3);
  EXPECT_EQ(line->values.at(1).integer, line->values.at(2).integer);
  EXPECT_EQ(line->values.at(3).text, "train.py(1): step");
}

// One pause of 2 ms a step, and launches that keep up otherwise: no advice about launches.
TEST(HostBoundTest, TellsLongStallsFromLaunchOverhead) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().pass(2000);
    for (int k = 0; k < 10; ++k) program.launch({.us = 50});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "host-bound");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->try_next.at(0), ::testing::HasSubstr("long gaps"));
  EXPECT_THAT(find_by_rule(loop(4, 10, {.us = 1}).trace(), "host-bound")->try_next.at(0),
              ::testing::HasSubstr("each launch"));
}

// The thread loses its core for 2 ms inside an operator that launches: nothing to move out of the step.
TEST(HostBoundTest, DoesNotCallALaunchThatWasHeldUpSomethingElse) {
  const auto brief = [](bool in_operator) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().pass(in_operator ? 5 : 2000);
      program.begin_op("aten::mul");
      if (in_operator) program.pass(2000);
      for (int k = 0; k < 10; ++k) program.launch({.us = 50});
      program.end().pass(5).end();
    }
    const auto finding = find_by_rule(program.trace(), "host-bound");
    EXPECT_TRUE(finding);
    return finding ? finding->brief.pattern : "";
  };
  EXPECT_EQ(brief(true), "The CPU launches work too slowly for the GPU");
  EXPECT_EQ(brief(false), "The GPU waits in long gaps while the CPU does something else");
}

// Ten rounds whose first size is another in each.
TEST(HostBoundTest, AdvisesEqualSizesForALoopOfUnequalOnes) {
  const auto action = [](bool changes) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 10; ++k) {
        const std::string rows = std::to_string(changes ? 16 + 7 * k % 50 : 16);
        program.begin_op("aten::mm", {.input_dims = "[[" + rows + ", 64], [64, 64]]",
                                      .input_types = R"(["float", "float"])"});
        program.pass(8).kernel("gemm", 1).end();
      }
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "host-bound");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action(true), ::testing::HasSubstr("pad to one size"));
  EXPECT_THAT(action(false), ::testing::Not(::testing::HasSubstr("pad to one size")));
}

// A step of launches that the GPU waits for, from inside of compiled code or in one replay.
TEST(HostBoundTest, DoesNotAdviseWhatTheProgramDoesAlready) {
  const auto advice = [](std::string_view around, std::string_view call) {
    ProgramSketch program;
    std::int64_t id = 1000;
    for (int i = 0; i < 4; ++i) {
      program.step();
      const std::int64_t start = program.cpu_us();
      for (int k = 0; k < 10; ++k) program.launch({.us = 1});
      if (!around.empty())
        program.sketch().op(around, program.at(start), program.at(program.cpu_us() - start));
      if (!call.empty()) {
        program.sketch().runtime(call, program.at(program.cpu_us()), program.at(5),
                                 {.correlation = ++id});
        for (int k = 0; k < 2; ++k)
          program.sketch().kernel("gemm", program.at(program.cpu_us() + 6 + k), program.at(1),
                                  {.correlation = id});
        program.pass(10);
      }
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "host-bound");
    EXPECT_TRUE(finding);
    std::string all;
    for (const std::string& each : finding ? finding->try_next : std::vector<std::string>{})
      all += each + '\n';
    return all;
  };
  EXPECT_THAT(advice("", ""),
              ::testing::AllOf(::testing::HasSubstr("fused operators, torch.compile"),
                               ::testing::HasSubstr("replay the step as a CUDA")));
  EXPECT_THAT(advice("Torch-Compiled Region: 0/0", ""),
              ::testing::AllOf(::testing::HasSubstr("torch.compile is in use"),
                               ::testing::HasSubstr("reduce-overhead"),
                               ::testing::Not(::testing::HasSubstr("fused operators"))));
  EXPECT_THAT(advice("Torch-Compiled Region: 0/0", "cudaGraphLaunch"),
              ::testing::AllOf(::testing::HasSubstr("CUDA graphs are in use"),
                               ::testing::Not(::testing::HasSubstr("reduce-overhead"))));
}

TEST(HostBoundTest, IsQuietWhenTheGpuIsBusy) {
  EXPECT_FALSE(find_by_rule(loop(4, 10, {.us = 50}).trace(), "host-bound"));
}

TEST(HostBoundTest, IsQuietOnOneKernel) {
  EXPECT_FALSE(find_by_rule(loop(1, 1, {.us = 1}).trace(), "host-bound"));
}

TEST(HostBoundTest, IsNotCheckedWithoutLaunches) {
  testing::Sketch sketch;
  sketch.kernel("a", 0, 1000).kernel("b", 50'000, 1000);
  EXPECT_EQ(state_of_rule(sketch.trace(), "host-bound"), RuleRun::State::kNotChecked);
}

// A step of 1040: 1000 of loading, then four launches of 10 each. The first kernel begins 3 + 4 + 2
// after the loading, four times 50 end at 1209, and the next step's loading lasts until 2040.
ProgramSketch loading(std::string_view range, std::int64_t us = 1000) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin(range);
    program.cpu_op("aten::stack", us).end();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  return program;
}

TEST(HostBoundTest, IsInputBoundWhenMostOfTheWaitIsForTheNextBatch) {
  const auto finding = find_by_rule(
      loading("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__").trace(), "host-bound");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::StartsWith("Input-bound"));
  ASSERT_EQ(finding->verdict.values.size(), 5u);
  EXPECT_EQ(finding->verdict.values[4].integer, 831'000);  // 2040 - 1209
  EXPECT_THAT(finding->try_next.front(), ::testing::HasSubstr("see dataloader-wait"));
}

// 400 of loading: no gap is longer than 500, but faster launches would not help either.
TEST(HostBoundTest, AdvisesAboutBatchesWhenEachWaitForOneIsShort) {
  const auto finding = find_by_rule(
      loading("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 400).trace(),
      "host-bound");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::StartsWith("Input-bound"));
  EXPECT_EQ(finding->brief.pattern, "The GPU waits for the next batch");
  EXPECT_EQ(finding->try_next.size(), 1u);
  EXPECT_THAT(finding->try_next.front(), ::testing::HasSubstr("see dataloader-wait"));
}

// The same step with 1000 in one call to the driver instead of the loading.
ProgramSketch calling(std::string_view name) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().call(name, 1000);
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  return program;
}

TEST(HostBoundTest, SaysWhenMostOfTheWaitIsForMemory) {
  const auto finding = find_by_rule(calling("cudaFree").trace(), "host-bound");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::StartsWith("CPU-bound"));
  ASSERT_EQ(finding->verdict.values.size(), 5u);
  EXPECT_EQ(finding->verdict.values[4].integer, 831'000);
  EXPECT_THAT(finding->try_next.front(), ::testing::HasSubstr("see allocator-calls"));
}

TEST(HostBoundTest, IsCpuBoundWhenTheWaitIsForSomethingElse) {
  const auto finding = find_by_rule(loading("my own loading").trace(), "host-bound");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::StartsWith("CPU-bound"));
}

TEST(HostBoundTest, KnowsEveryCallForMemory) {
  for (const char* call : {"cudaMallocAsync", "hipExtMallocWithFlags", "cuMemAlloc_v2"}) {
    const auto finding = find_by_rule(calling(call).trace(), "host-bound");
    ASSERT_TRUE(finding);
    EXPECT_THAT(finding->try_next.front(), ::testing::HasSubstr("see allocator-calls")) << call;
  }
}

// Ten launches, each after Python of 30 us or of 300 us.
TEST(HostBoundTest, TellsCodeBetweenLaunchesFromLaunches) {
  const auto found = [](std::int64_t pause_us, std::string_view frame) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 10; ++k) {
        if (!frame.empty())
          program.sketch().slice("python_function", frame, ProgramSketch::at(program.cpu_us()),
                                 us(pause_us));
        program.pass(pause_us).launch({.us = 1});
      }
      program.end();
    }
    return find_by_rule(program.trace(), "host-bound");
  };
  // Short code, code that no frame tells from torch's, and torch's own.
  for (const auto& launches : {found(30, "tree.py(7): walk"), found(300, {}),
                               found(300, "torch/optim/adamw.py(240): step")}) {
    ASSERT_TRUE(launches);
    EXPECT_EQ(launches->brief.pattern, "The CPU launches work too slowly for the GPU");
  }
  const auto code = found(300, "tree.py(7): walk");
  ASSERT_TRUE(code);
  EXPECT_THAT(code->brief.pattern, ::testing::HasSubstr("code without operators"));
  EXPECT_EQ(code->action.pattern.find("reduce-overhead"), std::string::npos);
  EXPECT_EQ(code->gain.most_ns, code->brief.values.at(0).integer);
  EXPECT_EQ(code->gain.most_ns, 10 * 300'000);
}

// No graph holds a factorization that waits for its result.
TEST(HostBoundTest, AdvisesNoGraphForAnOperatorThatWaits) {
  const auto action = [](int launches_inside, int launches_outside) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin_op("aten::linalg_lu_factor_ex");
      for (int k = 0; k < launches_inside; ++k) program.pass(8).kernel("lu", 1);
      program.call("cudaStreamSynchronize", 5).end();
      for (int k = 0; k < launches_outside; ++k) program.launch({.us = 1});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "host-bound");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action(12, 4), ::testing::HasSubstr("Call it less often"));
  EXPECT_THAT(action(4, 12), ::testing::HasSubstr("A CUDA graph cannot contain the waits in {}"));
}

// Dynamo leaves scripted modules as they are.
TEST(HostBoundTest, AdvisesNoCompilingOfTorchScript) {
  const auto action = [](std::string_view node) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin_op(std::string(node));
      for (int k = 0; k < 12; ++k) program.launch({.us = 1});
      program.end().end();
    }
    const auto finding = find_by_rule(program.trace(), "host-bound");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action("torch::jit::(anonymous namespace)::DifferentiableGraphBackward"),
              ::testing::StartsWith("torch.compile does not compile torch.jit.script modules"));
  EXPECT_THAT(action("AddmmBackward0"), ::testing::StartsWith("Use torch.compile(model"));
}

// A sparse optimizer waits for the size of each table's gradient: compiling the model would not change it.
TEST(HostBoundTest, AdvisesFewerParametersForAnOptimizerThatWaits) {
  const auto action = [](int launches_inside, int launches_outside) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin("Optimizer.step#SparseAdam.step");
      program.begin_op("aten::_coalesce").pass(8).kernel("sort", 1);
      program.call("cudaStreamSynchronize", 5).end();
      for (int k = 0; k < launches_inside; ++k) program.launch({.us = 1});
      program.end();
      for (int k = 0; k < launches_outside; ++k) program.launch({.us = 1});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "host-bound");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action(12, 4), ::testing::HasSubstr("Most are the optimizer's"));
  EXPECT_THAT(action(4, 12), ::testing::HasSubstr("torch.compile(model)"));
}

// After the backward pass, work is for parameters, of which a larger batch has no fewer.
TEST(HostBoundTest, AdvisesNoLargerBatchForWorkOfParameters) {
  const auto action = [](int before, int after) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < before; ++k) program.launch({.us = 1});
      program.begin_op("autograd::engine::evaluate_function: MmBackward0").pass(5);
      program.kernel("gemm", 1).end();
      for (int k = 0; k < after; ++k) program.launch({.us = 1});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "host-bound");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action(12, 4), ::testing::HasSubstr("larger batch"));
  EXPECT_THAT(action(4, 12), ::testing::Not(::testing::HasSubstr("larger batch")));
}

// One launch of ten takes 2 ms, in each step of another kernel. A kernel that ran before is not loaded: something holds the thread up.
TEST(HostBoundTest, TellsALaunchThatIsHeldUpFromAFirstUse) {
  const auto finding_of = [](bool is_first_use) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 10; ++k) {
        const std::string kernel = is_first_use && k == 5 ? "new" + std::to_string(i) : "gemm";
        program.launch({.name = kernel, .us = 5, .call_us = k == 5 ? 900 : 4});
      }
      program.end();
    }
    return find_by_rule(program.trace(), "host-bound").value_or(Finding());
  };
  EXPECT_THAT(finding_of(false).brief.pattern, ::testing::HasSubstr("had run before"));
  EXPECT_THAT(finding_of(false).action.pattern, ::testing::Not(::testing::HasSubstr("warm-up")));
  EXPECT_THAT(finding_of(true).brief.pattern,
              ::testing::Not(::testing::HasSubstr("had run before")));
}

}  // namespace
}  // namespace lanescope::explain
