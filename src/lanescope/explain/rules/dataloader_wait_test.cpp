#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_cpu_loop_test.h"
#include "lanescope/model/child_process.h"
#include "lanescope/testing/sampled_slice.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

TEST(DataloaderWaitTest, SpeaksWhenTheGpuIsIdleInNext) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    program.cpu_op("aten::stack", 200).end();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "dataloader-wait");
  ASSERT_TRUE(finding);
  EXPECT_GT(finding->at_stake_ratio, 0.05);
}

// torch 1.8 and older write the loader's ranges as operators.
TEST(DataloaderWaitTest, KnowsTheLoaderOfOldTraces) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().cpu_op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 200);
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "dataloader-wait");
  ASSERT_TRUE(finding);
  EXPECT_GT(finding->at_stake_ratio, 0.05);
}

TEST(DataloaderWaitTest, IsQuietWhenLoadingHidesBehindTheGpu) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    program.cpu_op("aten::stack", 100).end();
    for (int k = 0; k < 10; ++k) program.launch({.us = 50});
    program.end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "dataloader-wait"));
}

// 64 rows of a tensor, or the one tensor of each of two pictures.
TEST(DataloaderWaitTest, SeesRowsThatAreTakenOneByOne) {
  const auto action = [](int rows) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
      for (int row = 0; row < rows; ++row) program.cpu_op("aten::select", 2);
      program.pass(1'500).cpu_op("aten::stack", 200).end();
      for (int k = 0; k < 4; ++k) program.launch({.us = 50});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "dataloader-wait");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action(64).find("one by one"), std::string::npos);
  EXPECT_NE(action(2).find("num_workers"), std::string::npos);
}

// Rows of 64 views: with three other operators a row, or 250 us each, the samples are made, not only taken.
TEST(DataloaderWaitTest, DoesNotTakeSamplesThatAreMadeForRowsOfATensor) {
  const auto action = [](int others, std::int64_t pause_us) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
      for (int row = 0; row < 64; ++row) {
        program.cpu_op("aten::select", 2).pass(pause_us);
        for (int k = 0; k < others; ++k) program.cpu_op("aten::mul", 2);
      }
      program.cpu_op("aten::stack", 200).end();
      for (int k = 0; k < 4; ++k) program.launch({.us = 50});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "dataloader-wait");
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action(2, 20).find("one by one"), std::string::npos);
  EXPECT_NE(action(3, 20).find("num_workers"), std::string::npos);
  EXPECT_NE(action(0, 250).find("num_workers"), std::string::npos);
}

// Of 900 us a worker's hand-over would cost a large part.
TEST(DataloaderWaitTest, AdvisesWorkersForLongBatchesOnly) {
  const auto action = [](std::int64_t batch_us) {
    const auto finding =
        find_by_rule(draw_cpu_loop({.steps_us = {5'000, 5'000, 5'000}, .batch_us = batch_us}),
                     "dataloader-wait");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action(1'000).find("num_workers"), std::string::npos);
  EXPECT_NE(action(999).find("too short for workers"), std::string::npos);
}

void add_samples(TraceBuilder& builder, std::int64_t process, std::int64_t thread,
                 std::string_view function, std::int64_t samples, std::int64_t self) {
  testing::add_sampled_slice(builder, {.process = process,
                                       .thread = thread,
                                       .function = function,
                                       .start_ns = us(1000),
                                       .dur_ns = us(4000),
                                       .samples = samples,
                                       .self = self,
                                       .lines = "{\"14\": 3, \"16\": 9}"});
}

// Four steps of 700 us, of which 500 us wait for a batch.
ProgramSketch waiting_for(std::string_view loader) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin(loader).pass(500).end();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  return program;
}

// Two workers with 400 samples each at equal distances of 10 us. One of them makes batches all the time,
// all in __getitem__ and its two callees; the other one waits.
TEST(DataloaderWaitTest, NamesWhatTheWorkersDo) {
  ProgramSketch program =
      waiting_for("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
  TraceBuilder& builder = program.sketch().builder();
  for (const std::int64_t pid : {200, 201}) {
    Scalar process;
    process.number = pid;
    builder.set_process_name(process, builder.intern("DataLoader worker " + std::to_string(pid)));
    builder.set_process_labels(process, builder.intern(kChildProcessLabel));
    add_samples(builder, pid, pid, "torch/utils/data/_utils/worker.py(231): _worker_loop", 400,
                pid == 201 ? 400 : 0);
  }
  // The thread that feeds the worker's queue waits, which is not the worker's loop.
  add_samples(builder, 200, 999, "queues.py(211): _feed", 400, 400);
  add_samples(builder, 200, 200, "torch/utils/data/_utils/fetch.py(47): fetch", 400, 0);
  add_samples(builder, 200, 200, "dataset.py(10): __getitem__", 400, 400);
  const auto finding = find_by_rule(program.trace(), "dataloader-wait");
  ASSERT_TRUE(finding);
  const Sentence& line = finding->arithmetic.back();
  EXPECT_EQ(
      line.pattern,
      "samples of the workers' Python stacks in these waits: they made batches in {} ({} of {} "
      "samples), about {} of that ({} samples) in {}, mostly at line {}");
  const std::int64_t busy = line.values.at(1).integer;
  EXPECT_GE(busy,
            98);  // 50 a wait, of which the steady steps have two or three; cut ends round down
  EXPECT_EQ(line.values.at(2).integer, 2 * busy);
  EXPECT_EQ(line.values.at(4).integer, busy);
  EXPECT_EQ(line.values.at(5).text, "dataset.py(10): __getitem__");
  EXPECT_EQ(line.values.at(6).integer, 16);
  EXPECT_EQ(
      finding->action.pattern,
      "Make {} faster, or raise num_workers: it takes about {} of the time in which workers make "
      "batches");
}

TEST(DataloaderWaitTest, NamesTheFunctionThatLoadsInTheProcessItself) {
  ProgramSketch program =
      waiting_for("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
  add_samples(program.sketch().builder(), 100, 100, "dataset.py(10): __getitem__", 400, 400);
  const auto finding = find_by_rule(program.trace(), "dataloader-wait");
  ASSERT_TRUE(finding);
  const Sentence& line = finding->arithmetic.back();
  EXPECT_TRUE(line.pattern.starts_with("samples of the waiting thread's Python stack: about"))
      << line.pattern;
  EXPECT_EQ(line.values.at(3).text, "dataset.py(10): __getitem__");
}

TEST(DataloaderWaitTest, OnTheCpuSpeaksFromATwentiethOfTheStepsOn) {
  const auto finding = find_by_rule(
      draw_cpu_loop({.steps_us = {1'000, 1'000, 1'000}, .batch_us = 400}), "dataloader-wait");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 400 * kUs);
  EXPECT_DOUBLE_EQ(finding->at_stake_ratio, 0.4);
  EXPECT_FALSE(find_by_rule(draw_cpu_loop({.batch_us = 49}), "dataloader-wait"));
  EXPECT_TRUE(find_by_rule(draw_cpu_loop({.batch_us = 50}), "dataloader-wait"));
}

// The batch has arrived, and 350 us of 500 go into opening its tensors, or 150.
TEST(DataloaderWaitTest, TellsReceivingFromWaitingForWorkers) {
  const auto action = [](std::int64_t loads_us) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
      program.sketch().slice("python_function", "<built-in function loads>",
                             us(program.cpu_us() + 100), us(loads_us));
      program.pass(500).end();
      for (int k = 0; k < 4; ++k) program.launch({.us = 50});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "dataloader-wait");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action(350).find("a thread receives them"), std::string::npos);
  EXPECT_NE(action(150).find("num_workers"), std::string::npos);
}

// What the loader's call launches: 32 samples copied one by one; two copies of a batch; 32 kernels alone; nothing.
TEST(DataloaderWaitTest, AdvisesNoWorkersForSamplesOnTheGpu) {
  const auto with = [](int copies, int kernels, int first_batch = 0) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
      for (int k = 0; k < copies && i >= first_batch; ++k)
        program.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 2, "aten::to"));
      for (int k = 0; k < kernels; ++k) program.launch({.us = 1, .op = "aten::sub"});
      program.pass(1'500).cpu_op("aten::stack", 200).end();
      for (int k = 0; k < 4; ++k) program.launch({.us = 50});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "dataloader-wait");
    EXPECT_TRUE(finding);
    return finding ? *finding : Finding{};
  };
  const Finding by_sample = with(32, 32);
  EXPECT_NE(by_sample.action.pattern.find("copy a batch at once"), std::string::npos);
  EXPECT_EQ(by_sample.brief.values.at(0).integer, 32);  // a step has one batch
  EXPECT_FALSE(by_sample.gain_is_bound);
  EXPECT_NE(with(2, 0).action.pattern.find("in the loop, not in the loader"), std::string::npos);
  const Finding made = with(0, 32);
  EXPECT_NE(made.action.pattern.find("whole batch in one call"), std::string::npos);
  EXPECT_TRUE(made.gain_is_bound);
  EXPECT_NE(with(0, 0).action.pattern.find("num_workers=4"), std::string::npos);
  EXPECT_NE(with(1, 0, 3).action.pattern.find("num_workers=4"), std::string::npos);  // one of four
}

// Steps of six calls of the loader, of which the first takes 3 ms, the last `last_us` and the others `middle_us`. Each step is a pass:
// after its last call it reads a loss. Or it works on the batch of that call, too.
TEST(DataloaderWaitTest, AdvisesNoMoreWorkersWhereOnlyTheEndsOfAPassAreLong) {
  const auto action = [](std::int64_t middle_us, std::int64_t last_us, bool works_on_last) {
    ProgramSketch program;
    for (int step = 0; step < 4; ++step) {
      program.step().begin("epoch");
      for (int i = 0; i < 6; ++i) {
        program.begin("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
        program.pass(i == 0 ? 3000 : i == 5 ? last_us : middle_us).end();
        if (i < 5 || works_on_last) program.launch({.us = 50});
      }
      program.wait("aten::item").end().end();
    }
    const auto finding = find_by_rule(program.trace(), "dataloader-wait");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action(100, 2000, false).find("persistent_workers"), std::string::npos);
  EXPECT_NE(action(100, 100, false).find("only the first batch"), std::string::npos);
  EXPECT_NE(action(100, 2000, true).find("Raise num_workers"), std::string::npos);
  EXPECT_NE(action(1000, 2000, false).find("Raise num_workers"), std::string::npos);
}

// torch.tensor has 1,300 us of 2,000 of each wait, or 700; json.loads has 1,300.
TEST(DataloaderWaitTest, SeesListsThatBecomeTensorsInTheLoader) {
  const auto with = [](const char* function, std::int64_t its_us) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
      program.sketch().slice("python_function", function, us(program.cpu_us() + 100), us(its_us));
      program.pass(2'000).end();
      for (int k = 0; k < 4; ++k) program.launch({.us = 50});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "dataloader-wait");
    EXPECT_TRUE(finding);
    return finding ? *finding : Finding{};
  };
  constexpr char kTensor[] = "<built-in method tensor of type object at 0x7f1d4cf3e180>";
  EXPECT_NE(with(kTensor, 1'300).action.pattern.find("Keep samples as tensors"), std::string::npos);
  EXPECT_NE(with(kTensor, 700).action.pattern.find("num_workers=4"), std::string::npos);
  const Finding parsing = with("<built-in function loads>", 1'300);
  EXPECT_NE(parsing.action.pattern.find("num_workers=4"), std::string::npos);
  EXPECT_EQ(parsing.evidence.size(), 2);  // it is named all the same
}

}  // namespace
}  // namespace lanescope::explain
