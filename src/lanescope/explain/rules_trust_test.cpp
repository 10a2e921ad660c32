// Rules about the recording itself, and about variation: each on a drawn program in which it must
// speak and on a near miss in which it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::ProgramSketch;
using testing::Sketch;
using Work = ProgramSketch::Work;

TEST(NoGpuWorkTest, SpeaksOfLaunchesWithoutAnyKernel) {
  Sketch sketch;
  for (int i = 0; i < 4; ++i)
    sketch.runtime("cudaLaunchKernel", i * 100, 50, {.correlation = i + 1});
  const auto finding = find_by_rule(sketch.trace(), "no-gpu-work");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kTrust);
  EXPECT_EQ(finding->verdict.values[0].integer, 4);
}

TEST(NoGpuWorkTest, SpeaksOfGpuMemoryWithoutCalls) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 100).memory(50, 512, 1);
  const auto finding = find_by_rule(sketch.trace(), "no-gpu-work");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->try_next.at(0), HasSubstr("ProfilerActivity.CUDA"));
}

TEST(NoGpuWorkTest, IsQuietAboutProgramsOfTheCpuAndAboutOneKernel) {
  Sketch cpu;
  cpu.op("aten::mm", 0, 100).memory(50, 512, 0).runtime("cudaGetDeviceCount", 200, 5);
  EXPECT_FALSE(find_by_rule(cpu.trace(), "no-gpu-work"));
  Sketch gpu;
  gpu.runtime("cudaLaunchKernel", 0, 50, {.correlation = 1}).kernel("k", 60, 5, {.correlation = 1});
  EXPECT_FALSE(find_by_rule(gpu.trace(), "no-gpu-work"));
}

// Ten launches 100 us apart; each kernel begins `after_ns` after its launch began.
Trace shifted(std::int64_t after_ns, int shifted_pairs = 10) {
  Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = 1'000'000 + i * 100'000;
    sketch.runtime("cudaLaunchKernel", at, 4'000, {.correlation = i + 1});
    sketch.kernel("gemm", at + (i < shifted_pairs ? after_ns : 6'000), 10'000,
                  {.correlation = i + 1});
  }
  return sketch.trace();
}

TEST(ClockOffsetTest, SpeaksWhenKernelsBeginBeforeTheirLaunch) {
  const auto finding = find_by_rule(shifted(-30'000), "clock-offset");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kTrust);
  EXPECT_EQ(finding->verdict.values[0].integer, 10);
  EXPECT_EQ(finding->verdict.values[2].integer, 30'000);
  EXPECT_THAT(finding->arithmetic.at(1).values.at(2).text, HasSubstr("about the same"));
}

TEST(ClockOffsetTest, IsQuietAboutRoundingAndAboutTwoOddPairs) {
  EXPECT_FALSE(find_by_rule(shifted(-1'000), "clock-offset"));
  EXPECT_FALSE(find_by_rule(shifted(-30'000, 2), "clock-offset"));
  EXPECT_FALSE(find_by_rule(shifted(2'000), "clock-offset"));  // within the call: normal
}

// 40 launches; of those from the 10th on, `lost` have no kernel.
Sketch& with_lost(Sketch& sketch, int lost, bool at_end) {
  for (int i = 0; i < 40; ++i) {
    const std::int64_t at = i * 100'000;
    sketch.runtime("cudaLaunchKernel", at, 4'000, {.correlation = i + 1});
    const bool is_lost = at_end ? i >= 40 - lost : i >= 10 && i < 10 + lost;
    if (!is_lost) sketch.kernel("gemm", at + 6'000, 10'000, {.correlation = i + 1});
  }
  return sketch;
}

TEST(LostEventsTest, SpeaksOfLaunchesWithoutKernelInTheMiddle) {
  Sketch sketch;
  const auto finding = find_by_rule(with_lost(sketch, 6, false).trace(), "lost-events");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 6);
  EXPECT_EQ(finding->verdict.values[1].integer, 40);
}

TEST(LostEventsTest, SpeaksOfAGpuRecordingThatStopsEarly) {
  Sketch sketch;
  const auto finding = find_by_rule(with_lost(sketch, 6, true).trace(), "lost-events");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("stops before that of the CPU"));
  EXPECT_EQ(finding->verdict.values[0].integer, 6);
  EXPECT_EQ(finding->verdict.values[1].integer, 40);
  EXPECT_EQ(finding->verdict.values[2].integer, 3'400'000);
}

TEST(LostEventsTest, IsQuietAboutFourAtTheEndAndWhileAStreamIsCaptured) {
  Sketch end;
  EXPECT_FALSE(find_by_rule(with_lost(end, 4, true).trace(), "lost-events"));
  Sketch capture;
  for (int i = 0; i < 20; ++i)
    capture.runtime("cudaLaunchKernel", 1'010'000 + i * 1'000, 500, {.correlation = 100 + i});
  capture.runtime("cudaStreamBeginCapture_v10000", 1'005'000, 1'000)
      .runtime("cudaStreamEndCapture", 1'035'000, 1'000);
  EXPECT_FALSE(find_by_rule(with_lost(capture, 0, true).trace(), "lost-events"));
}

TEST(LostEventsTest, SpeaksOfWorkWithoutLaunchInTheMiddle) {
  Sketch sketch;
  with_lost(sketch, 0, true);
  for (int i = 0; i < 5; ++i) sketch.kernel("other", 2'050'000 + i * 100'000, 10'000);
  const auto finding = find_by_rule(sketch.trace(), "lost-events");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("no launch call"));
  EXPECT_EQ(finding->verdict.values[0].integer, 5);
}

TEST(LostEventsTest, SpeaksOfRecordsThatTheRecorderDropped) {
  Sketch sketch;
  with_lost(sketch, 0, true).builder().stats().count(ImportIssue::kDroppedRecords, {}, 12);
  const auto finding = find_by_rule(sketch.trace(), "lost-events");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 12);
}

TEST(DamagedFileTest, SpeaksOfACutFileWithItsByte) {
  Sketch sketch;
  sketch.op("a", 0, 10).builder().stats().count(ImportIssue::kTruncatedFile, 4711);
  const auto finding = find_by_rule(sketch.trace(), "damaged-file");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("end is missing"));
  EXPECT_EQ(finding->evidence.at(0).text.values.at(3).integer, 4711);
}

TEST(DamagedFileTest, IsQuietAboutMendedTextAndHalfArrows) {
  Sketch sketch;
  sketch.op("a", 0, 10).builder().stats().count(ImportIssue::kUnescapedText, 5);
  sketch.builder().stats().count(ImportIssue::kOrphanFlow, 5);
  EXPECT_FALSE(find_by_rule(sketch.trace(), "damaged-file"));
}

TEST(FewStepsTest, SpeaksOfOneStepAndOfTwoThatDisagree) {
  EXPECT_TRUE(find_by_rule(loop(1, 4, {.us = 50}).trace(), "few-steps"));
  EXPECT_TRUE(find_by_rule(loop(2, 4, {.us = 50}).trace(), "few-steps"));
  ProgramSketch program = loop(2, 4, {.us = 50});
  program.step();
  for (int k = 0; k < 8; ++k) program.launch({.us = 50});
  EXPECT_TRUE(find_by_rule(program.end().trace(), "few-steps"));
}

TEST(FewStepsTest, IsQuietWhenTwoAgreeAndWithoutMarks) {
  EXPECT_FALSE(find_by_rule(loop(3, 4, {.us = 50}).trace(), "few-steps"));
  EXPECT_FALSE(find_by_rule(shifted(6'000), "few-steps"));
}

ProgramSketch with_frames(int frames, int ops) {
  ProgramSketch program = loop(3, 4, {.us = 50});
  for (int i = 0; i < frames; ++i)
    program.sketch().slice("python_function", "train.py(3): f", ProgramSketch::at(1000 + i), 500);
  for (int i = 0; i < ops; ++i) program.sketch().op("aten::add", ProgramSketch::at(1000 + i), 400);
  return program;
}

// 1000 frames beside 3 steps and 24 operators and calls.
TEST(StackCostTest, SpeaksWhenMostEventsAreFrames) {
  const auto finding = find_by_rule(with_frames(1000, 0).trace(), "stack-cost");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1000);
  EXPECT_EQ(finding->verdict.values[1].integer, 1027);
}

TEST(StackCostTest, IsQuietWhenTheyAreFewOrAMinority) {
  EXPECT_FALSE(find_by_rule(with_frames(999, 0).trace(), "stack-cost"));
  EXPECT_FALSE(find_by_rule(with_frames(1000, 1000).trace(), "stack-cost"));
}

ProgramSketch with_request(std::int64_t request_us, std::int64_t cpu_us) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) {
    program.step().pass(cpu_us);
    if (i == 0) program.overhead("Activity Buffer Request", request_us);
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  return program;
}

// The first step begins, the request takes 2000 us, and 9 us later the first work begins.
TEST(StartUpLagTest, SpeaksOfTheRequestBeforeTheFirstWork) {
  const auto finding = find_by_rule(with_request(2000, 0).trace(), "start-up-lag");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 2'009'000);
  EXPECT_EQ(finding->verdict.values[1].integer, 2'000'000);
}

TEST(StartUpLagTest, IsQuietWhenItIsShortOrTheProgramWasLateItself) {
  EXPECT_FALSE(find_by_rule(with_request(200, 0).trace(), "start-up-lag"));
  EXPECT_FALSE(find_by_rule(with_request(2000, 5000).trace(), "start-up-lag"));
}

TEST(StartUpLagTest, IsQuietWhenEarlierWorkFillsTheLane) {
  ProgramSketch program = with_request(2000, 0);
  program.sketch().kernel("gemm", ProgramSketch::at(1001), ProgramSketch::at(100));
  EXPECT_FALSE(find_by_rule(program.trace(), "start-up-lag"));
}

// 40 launches a step of 10 us each against 100 us of work: 16 ms behind after five steps.
TEST(CpuAheadTest, SpeaksWhenTheQueueGrows) {
  const auto finding = find_by_rule(loop(5, 40, {.us = 100}).trace(), "cpu-ahead");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_GT(finding->verdict.values[1].integer, 10'000'000);
}

TEST(CpuAheadTest, IsQuietWhenTheGpuKeepsUpAndWhenWorkWaitsOnAnIdleGpu) {
  EXPECT_FALSE(find_by_rule(loop(5, 40, {.us = 5}).trace(), "cpu-ahead"));
  Sketch sketch;  // all launched at once, then run with pauses of 40 us
  for (int i = 0; i < 100; ++i) {
    sketch.runtime("cudaLaunchKernel", i * 5'000, 4'000, {.correlation = i + 1});
    sketch.kernel("gemm", 1'000'000 + i * 100'000, 60'000, {.correlation = i + 1});
  }
  EXPECT_FALSE(find_by_rule(sketch.trace(), "cpu-ahead"));
}

// 1500 launches of 2 us against 10 us of work each; when 1000 wait, a call takes 50 us.
ProgramSketch with_full_queue(std::int64_t held_us) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) {
    program.step();
    for (int k = 0; k < 700; ++k)
      program.launch({.us = 100, .call_us = i == 2 && k > 0 ? held_us : 4});
    program.end();
  }
  return program;
}

// When the last step begins, 1400 launches were made in 14 ms, and 140 pieces of work had run.
TEST(FullQueueTest, SpeaksWhenCallsWaitForARoomInTheQueue) {
  const auto finding = find_by_rule(with_full_queue(100).trace(), "full-queue");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_FALSE(find_by_rule(with_full_queue(100).trace(), "slow-launches"));
}

// 1200 launches of 1 us before the steps, and a queue that stays full in all of them: 100 us of
// work behind each call of 100 us.
TEST(FullQueueTest, SpeaksWhenNoCallFoundRoom) {
  ProgramSketch program;
  program.step();
  for (int k = 0; k < 1200; ++k) program.launch({.us = 100, .call_us = 1});
  program.end();
  for (int i = 0; i < 3; ++i) {
    program.step();
    for (int k = 0; k < 20; ++k) program.launch({.us = 100, .call_us = 100});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "full-queue");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 60);
  EXPECT_THAT(finding->arithmetic.at(0).pattern, HasSubstr("no call of the steady steps"));
}

TEST(FullQueueTest, IsQuietWhenCallsAreQuickOrTheQueueHasRoom) {
  EXPECT_FALSE(find_by_rule(with_full_queue(4).trace(), "full-queue"));
  EXPECT_FALSE(find_by_rule(loop(3, 60, {.us = 100, .call_us = 100}).trace(), "full-queue"));
}

// Calls of 30 us for work of 5: of each call the 22 us above the usual 8 count. Sixty a step.
TEST(SlowLaunchesTest, SpeaksWhenCallsAreSlowInTheMedian) {
  const auto finding = find_by_rule(loop(3, 60, {.us = 5, .call_us = 30}).trace(), "slow-launches");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 30'000);
  EXPECT_EQ(finding->at_stake_ns, 60 * 22'000);
}

// Two of sixty calls a step take 400 us, a hundred times the median; of which the profiler may have
// spent some on its own.
ProgramSketch with_slow_calls(std::int64_t profiler_us) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) {
    program.step();
    for (int k = 0; k < 60; ++k) {
      const bool slow = k % 30 == 7;
      if (slow && profiler_us > 0)
        program.sketch().overhead("Activity Buffer Request",
                                  ProgramSketch::at(program.cpu_us() + 5),
                                  ProgramSketch::at(profiler_us));
      program.launch({.us = 5, .call_us = slow ? 400 : 4});
    }
    program.end();
  }
  return program;
}

TEST(SlowLaunchesTest, SpeaksOfAFewVerySlowCalls) {
  const auto finding = find_by_rule(with_slow_calls(0).trace(), "slow-launches");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 4);
  EXPECT_EQ(finding->at_stake_ns, 2 * 396'000);
}

// 390 of the 400 us are a buffer that the profiler asked for.
TEST(SlowLaunchesTest, TheProfilersOwnWorkIsNoPartOfACall) {
  EXPECT_FALSE(find_by_rule(with_slow_calls(390).trace(), "slow-launches"));
}

TEST(SlowLaunchesTest, IsQuietWhenTheGpuIsBusyMeanwhileOrCallsAreUsual) {
  EXPECT_FALSE(find_by_rule(loop(3, 60, {.us = 40, .call_us = 30}).trace(), "slow-launches"));
  EXPECT_FALSE(find_by_rule(loop(3, 60, {.us = 5, .call_us = 8}).trace(), "slow-launches"));
}

// The first launch of a kernel loads it.
TEST(SlowLaunchesTest, IsQuietAboutFirstUses) {
  ProgramSketch program = loop(2, 60, {.us = 5});
  program.step();
  for (const char* first : {"a", "b", "c"})
    program.launch({.name = first, .us = 5, .call_us = 900});
  for (int k = 0; k < 60; ++k) program.launch({.us = 5});
  EXPECT_FALSE(find_by_rule(program.end().trace(), "slow-launches"));
}

// Ten steps of 4 x 50 us; each third one also writes a checkpoint: 300 us on the CPU.
ProgramSketch with_checkpoints(int steps, int every, std::int64_t us) {
  ProgramSketch program;
  for (int i = 0; i < steps; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.wait();
    if (i % every == every - 1) program.cpu_op("save_checkpoint", us);
    program.end();
  }
  return program;
}

TEST(UnevenStepsTest, SpeaksOfTwoKindsOfStepsAndWhatTheSlowOnesDo) {
  const auto finding = find_by_rule(with_checkpoints(13, 3, 300).trace(), "uneven-steps");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 4);
  EXPECT_EQ(finding->verdict.values[1].integer, 12);
  EXPECT_EQ(finding->verdict.values[2].integer - finding->verdict.values[3].integer, 300'000);
  EXPECT_EQ(finding->verdict.values[4].integer, 3);  // one of three
  EXPECT_EQ(finding->at_stake_ns, 4 * 300'000 / 12);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "save_checkpoint");
}

TEST(UnevenStepsTest, IsQuietAboutOneSlowStepASmallDifferenceAndARamp) {
  EXPECT_FALSE(find_by_rule(with_checkpoints(10, 9, 300).trace(), "uneven-steps"));
  EXPECT_FALSE(find_by_rule(with_checkpoints(13, 3, 30).trace(), "uneven-steps"));
  ProgramSketch ramp;
  for (int i = 0; i < 12; ++i) ramp.step().launch({.us = 100 + 20 * i}).wait().end();
  EXPECT_FALSE(find_by_rule(ramp.trace(), "uneven-steps"));
}

TEST(UnevenStepsTest, IsNotCheckedWithFewSteps) {
  EXPECT_EQ(state_of_rule(with_checkpoints(5, 2, 300).trace(), "uneven-steps"),
            RuleRun::State::kNotChecked);
}

// Each step makes a tensor on the CPU in 200 us, moves it (10 us of copy) and runs four gemms.
ProgramSketch with_built(const char* factory, std::int64_t pause_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    if (factory) program.cpu_op(factory, 200).pass(pause_us);
    program.launch({.name = "Memcpy HtoD (Pageable -> Device)",
                    .us = 10,
                    .op = "aten::to",
                    .category = "gpu_memcpy",
                    .call = "cudaMemcpyAsync"});
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.wait().end();
  }
  return program;
}

// 200 us of making, 10 us of aten::to, and 9 us more of the copy, which began 1 us before its end.
TEST(CpuBuiltTensorTest, SpeaksOfAFactoryBeforeTheCopy) {
  const auto finding = find_by_rule(with_built("aten::zeros", 0).trace(), "cpu-built-tensor");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);
  EXPECT_EQ(finding->at_stake_ns, 219'000);
  EXPECT_TRUE(find_by_rule(with_built("aten::zeros", 140).trace(), "cpu-built-tensor"));
}

TEST(CpuBuiltTensorTest, IsQuietAboutOtherOperatorsAndPausesBetween) {
  EXPECT_FALSE(find_by_rule(with_built("aten::stack", 0).trace(), "cpu-built-tensor"));
  EXPECT_FALSE(find_by_rule(with_built("aten::zeros", 160).trace(), "cpu-built-tensor"));
  EXPECT_FALSE(find_by_rule(with_built(nullptr, 0).trace(), "cpu-built-tensor"));
}

// Two layers; step i joins a cache of 10 + i (or always 10) and one piece, 20 us each.
ProgramSketch with_cache(bool grows, bool shapes = true) {
  ProgramSketch program;
  for (int i = 0; i < 8; ++i) {
    program.step();
    const std::string dims =
        "[[[1, 8, " + std::to_string(grows ? 10 + i : 10) + ", 64], [1, 8, 1, 64]], []]";
    for (int layer = 0; layer < 2; ++layer)
      program.launch({.us = 50})
          .launch({.name = "CatArrayBatchedCopy",
                   .us = 20,
                   .op = "aten::cat",
                   .dims = shapes ? dims : ""});
    program.end();
  }
  return program;
}

TEST(GrowingCatTest, SpeaksOfABufferThatGrowsByItsPiece) {
  const auto finding = find_by_rule(with_cache(true).trace(), "growing-cat");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 16);
  EXPECT_EQ(finding->verdict.values[1].text, "[1, 8, *, 64]");
  EXPECT_EQ(finding->verdict.values[2].integer, 10);
  EXPECT_EQ(finding->verdict.values[3].integer, 17);
  EXPECT_EQ(finding->at_stake_ns, 40'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 7);
}

TEST(GrowingCatTest, IsQuietAboutFixedShapesAndNotCheckedWithoutAny) {
  EXPECT_FALSE(find_by_rule(with_cache(false).trace(), "growing-cat"));
  EXPECT_EQ(state_of_rule(with_cache(true, false).trace(), "growing-cat"),
            RuleRun::State::kNotChecked);
}

// Real traces and what must be said of each.
namespace fs = std::filesystem;
void expect_speaks(const fs::path& path, const std::string& rule, bool speaks) {
  const auto trace = format::read_trace(path);
  ASSERT_TRUE(trace) << path;
  EXPECT_EQ(find_by_rule(*trace, rule).has_value(), speaks) << path << " " << rule;
}

void expect_none_speaks(const fs::path& path, const std::vector<std::string>& rules) {
  const auto trace = format::read_trace(path);
  ASSERT_TRUE(trace) << path;
  const auto explanation = run_rules(*gather_facts(*trace), {.only = rules, .off = {}});
  ASSERT_TRUE(explanation);
  EXPECT_EQ(explanation->runs.size(), rules.size());
  for (const Finding& finding : explanation->findings) ADD_FAILURE() << path << " " << finding.rule;
}

TEST(TrustOfRealTracesTest, Shipped) {
  const fs::path root = fs::path(LANESCOPE_SOURCE_DIR) / "tests" / "data";
  expect_speaks(root / "h200_mlp_train/trace.json.gz", "cpu-ahead", true);
  expect_speaks(root / "h200_mlp_train/trace.json.gz", "few-steps", false);
  expect_speaks(root / "h200_64_bf16_warm_eager/trace.json", "few-steps", true);
  expect_speaks(root / "h200_64_bf16_warm_eager/trace.json", "cpu-ahead", false);
}

TEST(TrustOfRealTracesTest, Shared) {
  const char* folder = std::getenv("LANESCOPE_SHARED_TRACES");
  const fs::path root =
      folder ? fs::path(folder) : fs::path(LANESCOPE_SOURCE_DIR) / ".." / "shared" / "traces";
  if (!fs::exists(root)) GTEST_SKIP() << "LOUD: no shared traces at " << root;
  expect_speaks(root / "h200/64_bf16_warm_eager_w0_0_a20.json", "start-up-lag", true);
  expect_speaks(root / "h200/llama_decode.json.gz", "start-up-lag", false);
  expect_speaks(root / "h200/llama_decode_stack.json.gz", "stack-cost", true);
  expect_speaks(root / "h200/llama_decode.json.gz", "stack-cost", false);
  expect_speaks(root / "public/odd_truncated_mid_event.json", "damaged-file", true);
  expect_speaks(root / "public/odd_trailing_comma.json", "damaged-file", false);
  // Orphans at the start, memsets without a record, programs of the CPU, other vendors.
  for (const char* healthy :
       {"h200/mlp_cudagraph.json.gz", "ddp4/healthy/rank0.json.gz",
        "public/hta_v100_test_rank1of2.json.gz", "public/tracelens_h100_bert_small.json.gz",
        "public/param_resnet_2080ti_112k.json.gz", "public/hta_mtia_inference.json.gz",
        "public/hta_cpu_only_gloo_small.pt.trace.json.gz",
        "public/tracelens_mi300_qwen_stack_memory.json.gz",
        "public/kineto_torch19_stack_memory_w4.pt.trace.json.gz"})
    expect_none_speaks(
        root / healthy,
        {"no-gpu-work", "clock-offset", "lost-events", "damaged-file", "slow-launches",
         "full-queue", "memory-growth", "memory-limit", "memory-fragmentation", "memory-peak"});
}

}  // namespace
}  // namespace lanescope::explain
