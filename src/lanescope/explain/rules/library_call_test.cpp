#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnLibrary {
  const char* frame = "json/__init__.py(183): dumps";
  const char* caller = "train.py(7): step";
  bool has_operators = false;
  bool is_loading = false;       // in the DataLoader's range
  int calls = 1;                 // of a step
  const char* inside = nullptr;  // a frame for half of the call
  const char* sent = nullptr;    // afterwards: the copy to the GPU
  bool copies_again = false;     // on the CPU, before that
  const char* last = nullptr;    // a frame at the end of the call, after one that waits
};

// Steps of a kernel of 50 us that is waited for, and of 500 us in a function which `caller` calls.
Trace draw_library(const DrawnLibrary& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const std::int64_t step_us = p.cpu_us();
    p.kernel("gemm", 50).wait().pass(10);
    const std::int64_t start_us = p.cpu_us();
    if (drawn.has_operators)
      p.cpu_op("aten::add", 400).pass(100);
    else
      p.pass(500);
    for (int i = 0; i < drawn.calls; ++i)
      p.sketch().slice("python_function", drawn.frame,
                       ProgramSketch::at(start_us) + i * us(500) / drawn.calls,
                       us(500) / drawn.calls);
    if (drawn.inside)
      p.sketch().slice("python_function", drawn.inside, ProgramSketch::at(start_us + 10), us(250));
    if (drawn.copies_again) p.cpu_op("aten::copy_", 300);
    if (drawn.sent) p.launch(ProgramSketch::memcpy(drawn.sent, 20, "aten::to"));
    if (drawn.last) {
      p.sketch().slice("python_function", "threading.py(323): wait",
                       ProgramSketch::at(start_us + 1), us(498));
      p.sketch().slice("python_function", drawn.last, ProgramSketch::at(start_us + 499), 900);
    }
    if (drawn.is_loading)
      p.sketch().annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                            ProgramSketch::at(start_us), us(500));
    p.pass(10);
    p.sketch().slice("python_function", drawn.caller, ProgramSketch::at(step_us),
                     us(p.cpu_us() - step_us));
  });
  return program.trace();
}

TEST(LibraryCallTest, NamesTheFunctionThatTheProgramCalls) {
  const auto finding = find_by_rule(draw_library({}), "library-call");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values[0].text, "json/__init__.py:183 dumps");
  EXPECT_EQ(finding->brief.values[1].integer, us(500));
  EXPECT_EQ(finding->brief.values[2].integer, 1);
  EXPECT_EQ(finding->at_stake_ns, us(500));
  EXPECT_NE(finding->action.pattern.find("as bytes"), std::string::npos);
}

TEST(LibraryCallTest, KnowsFunctionsThatWaitForOtherThreads) {
  const auto finding = find_by_rule(draw_library({.frame = "queue.py(154): get"}), "library-call");
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->brief.pattern.starts_with("The thread of the steps waits"));
}

// After the wait it asks for the time, or it takes what came.
TEST(LibraryCallTest, TellsATimeoutFromAWaitForOtherThreads) {
  const auto brief = [](const char* last) {
    const auto finding =
        find_by_rule(draw_library({.frame = "queue.py(154): get", .last = last}), "library-call");
    return finding ? finding->brief.pattern : "";
  };
  EXPECT_NE(brief("queue.py(209): _qsize").find("waits out its timeout"), std::string::npos);
  EXPECT_TRUE(brief("queue.py(217): _get").starts_with("The thread of the steps waits"));
}

TEST(LibraryCallTest, KnowsCallsThatWaitForTheNetwork) {
  const auto finding =
      find_by_rule(draw_library({.frame = "urllib/request.py(139): urlopen"}), "library-call");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("connection open"), std::string::npos);
}

// One call per step on a CPU, of these times; the first step is left out.
std::optional<Finding> of_calls_on_cpu(std::initializer_list<std::int64_t> times_us) {
  ProgramSketch program;
  std::size_t step = 0;
  program.steps(static_cast<int>(times_us.size()), [&](ProgramSketch& p) {
    const std::int64_t start_us = p.cpu_us();
    p.cpu_op("aten::mm", 1'000);
    const std::int64_t call_us = p.cpu_us(), time_us = times_us.begin()[step++];
    p.pass(time_us);
    p.sketch().slice("python_function", "pandas/core/generic.py(6591): astype",
                     ProgramSketch::at(call_us), us(time_us));
    p.sketch().slice("python_function", "train.py(7): step", ProgramSketch::at(start_us),
                     us(p.cpu_us() - start_us));
  });
  const Trace trace = program.trace();
  return find_by_rule(trace, "library-call");
}

// The core was taken once: 12 ms of three calls are not what they cost.
TEST(LibraryCallTest, OneLongCallOfFewOnACpuIsNotWhatTheyCost) {
  EXPECT_FALSE(of_calls_on_cpu({100, 20, 20, 12'000}));
  EXPECT_TRUE(of_calls_on_cpu({100, 400, 500, 1'200}));
}

// Batches that are drawn from a Python list of samples.
TEST(LibraryCallTest, KnowsThatTorchDrawsAllIndicesAtOnce) {
  const auto finding =
      find_by_rule(draw_library({.frame = "random.py(385): sample"}), "library-call");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("torch.randint"), std::string::npos);
}

// Records that are scaled one by one in threads: each task takes less than handing it over.
TEST(LibraryCallTest, CountsTasksThatAreHandedToAPool) {
  const auto brief = [](const DrawnLibrary& drawn) {
    const auto finding = find_by_rule(draw_library(drawn), "library-call");
    return finding ? *finding : Finding{};
  };
  const Finding many = brief({.frame = "concurrent/futures/thread.py(164): submit", .calls = 64});
  EXPECT_TRUE(many.brief.pattern.starts_with("Handing {} tasks to a pool"));
  EXPECT_EQ(many.brief.values.at(0).integer, 64);
  EXPECT_NE(many.action.pattern.find("larger pieces"), std::string::npos);
  const Finding few = brief({.frame = "concurrent/futures/thread.py(164): submit", .calls = 4});
  EXPECT_FALSE(few.brief.pattern.starts_with("Handing"));
  const Finding mapped = brief({.frame = "concurrent/futures/_base.py(583): map",
                                .inside = "concurrent/futures/thread.py(164): submit"});
  EXPECT_NE(mapped.action.pattern.find("larger pieces"), std::string::npos);
}

// A loss that is compiled in each step, and a layer's own work, which is no matter of this rule.
TEST(LibraryCallTest, KnowsThatAFunctionIsCompiledOnce) {
  const auto found = [](const char* frame) {
    return find_by_rule(draw_library({.frame = frame}), "library-call");
  };
  const auto finding = found("torch/__init__.py(2572): compile");
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->action.pattern.starts_with("Compile once, before the loop"));
  EXPECT_FALSE(found("torch/__init__.py(2400): __call__"));
  EXPECT_FALSE(found("torch/_dynamo/eval_frame.py(1476): optimize"));
}

TEST(LibraryCallTest, HasAWordForFunctionsThatItDoesNotKnow) {
  const auto finding =
      find_by_rule(draw_library({.frame = "pandas/core/frame.py(10): merge"}), "library-call");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->action.pattern.find("before the loop"), std::string::npos);
}

// A library's function that calls another, the program's own function, functions of torch, and such with operators.
TEST(LibraryCallTest, IsQuietAboutOthers) {
  const auto is_reported = [](const DrawnLibrary& drawn) {
    return find_by_rule(draw_library(drawn), "library-call").has_value();
  };
  EXPECT_FALSE(is_reported({.caller = "pandas/io/json.py(3): to_json"}));
  EXPECT_FALSE(is_reported({.frame = "train.py(30): tokens"}));
  EXPECT_FALSE(is_reported({.frame = "torch/_tensor.py(576): backward"}));
  EXPECT_FALSE(is_reported({.has_operators = true}));
  EXPECT_FALSE(is_reported({.frame = "PIL/Image.py(1016): convert", .is_loading = true}));
  EXPECT_TRUE(is_reported({.frame = "PIL/Image.py(1016): convert"}));
  EXPECT_TRUE(is_reported({.frame = "torch/nn/modules/module.py(2700): named_parameters"}));
}

TEST(LibraryCallTest, KnowsPoolsAndThreadsThatAreStarted) {
  const auto found = [](const char* frame) {
    return find_by_rule(draw_library({.frame = frame}), "library-call");
  };
  for (const char* frame :
       {"concurrent/futures/_base.py(612): result_iterator", "multiprocessing/pool.py(359): map"}) {
    const auto finding = found(frame);
    ASSERT_TRUE(finding) << frame;
    EXPECT_TRUE(finding->brief.pattern.starts_with("The thread of the steps waits"));
  }
  const auto started = found("threading.py(973): start");
  ASSERT_TRUE(started);
  EXPECT_NE(started->action.pattern.find("ThreadPoolExecutor"), std::string::npos);
}

// recv() waits for a process that already is another one: it is not advised to use another.
TEST(LibraryCallTest, KnowsThatAPipeWaitsForAnotherProcess) {
  const auto waits = find_by_rule(
      draw_library({.frame = "multiprocessing/connection.py(246): recv"}), "library-call");
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->brief.values.at(0).text, "another process");
  EXPECT_NE(waits->action.pattern.find("further ahead"), std::string::npos);
  const auto large = find_by_rule(draw_library({.frame = "multiprocessing/connection.py(246): recv",
                                                .inside = "<built-in function loads>"}),
                                  "library-call");
  ASSERT_TRUE(large);
  EXPECT_NE(large->action.pattern.find("shared memory"), std::string::npos);
}

TEST(LibraryCallTest, AdvisesWholeBatchesWhereAQueueIsAskedForEachItem) {
  const auto action = [](int calls) {
    const auto finding =
        find_by_rule(draw_library({.frame = "queue.py(154): get", .calls = calls}), "library-call");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_EQ(action(2).find("whole batches"), std::string::npos);
  EXPECT_NE(action(50).find("whole batches"), std::string::npos);
}

// Arrays that are joined into pinned memory can only be joined ahead; new memory is copied once more.
TEST(LibraryCallTest, KnowsWhetherArraysAreJoinedIntoPinnedMemory) {
  const auto action = [](const char* sent, bool copies_again) {
    const auto finding =
        find_by_rule(draw_library({.frame = "numpy/_core/shape_base.py(378): stack",
                                   .sent = sent,
                                   .copies_again = copies_again}),
                     "library-call");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_TRUE(action("Memcpy HtoD (Pinned -> Device)", false).starts_with("Join the next arrays"));
  EXPECT_NE(action("Memcpy HtoD (Pinned -> Device)", true).find("out="), std::string::npos);
  EXPECT_NE(action("Memcpy HtoD (Pageable -> Device)", false).find("out="), std::string::npos);
}

// A sorted list changes from step to step: "once, before the loop" is no advice for it. Tensor.sort() is an operator.
TEST(LibraryCallTest, KnowsWhatSortsAndReadsFiles) {
  const auto action = [](const char* frame) {
    const auto finding = find_by_rule(draw_library({.frame = frame}), "library-call");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_NE(action("<built-in method sort of list object at 0x7f0>").find("heapq"),
            std::string::npos);
  EXPECT_NE(action("numpy/lib/_npyio_impl.py(311): load").find("one file"), std::string::npos);
  EXPECT_NE(action("numpy/_core/memmap.py(358): __getitem__").find("read ahead"),
            std::string::npos);
  EXPECT_EQ(action("<built-in method sort of Tensor object at 0x7f0>"), "");
}

}  // namespace
}  // namespace lanescope::explain
