// Each rule on a drawn program in which it must speak and on a near miss in which it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;
using Work = ProgramSketch::Work;

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

TEST(GpuBoundTest, SpeaksWhenTheQueueIsFull) {
  EXPECT_TRUE(find_by_rule(loop(4, 10, {.us = 50}).trace(), "gpu-bound"));
}

TEST(GpuBoundTest, IsQuietWhenCopiesFillTheGpu) {
  const Work copy{.name = "Memcpy DtoD", .us = 50, .category = "gpu_memcpy"};
  EXPECT_FALSE(find_by_rule(loop(4, 10, copy).trace(), "gpu-bound"));
}

ProgramSketch with_collective(std::int64_t collective_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 5; ++k) program.launch({.us = 40});
    program.launch({.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", .us = collective_us});
    program.end();
  }
  return program;
}

// 200 us of compute and 100 us of an all-reduce on the same stream.
TEST(CommunicationBoundTest, SpeaksWhenACollectiveIsExposed) {
  const auto finding = find_by_rule(with_collective(100).trace(), "communication-bound");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 100'000);
}

// 100 us of compute and 100 us of communication, then a pause.
Trace with_idle(std::int64_t pause_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step()
        .launch({.us = 100})
        .launch({.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", .us = 100})
        .wait("cudaDeviceSynchronize")
        .pass(pause_us)
        .end();
  return program.trace();
}

TEST(CommunicationBoundTest, IsACostWhereTheGpuIsIdleForMuchLonger) {
  const auto bound = find_by_rule(with_idle(50), "communication-bound");
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->kind, FindingKind::kBound);
  const auto cost = find_by_rule(with_idle(300), "communication-bound");
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->kind, FindingKind::kCost);
  EXPECT_EQ(cost->at_stake_ns, 100'000);
  EXPECT_THAT(cost->verdict.pattern, ::testing::HasSubstr("was idle for longer"));
}

std::vector<std::string> bounds_of(const Trace& trace) {
  const auto facts = gather_facts(trace);
  const auto explanation = run_rules(*facts);
  std::vector<std::string> bounds;
  for (const Finding& finding : explanation->findings)
    if (finding.kind == FindingKind::kBound) bounds.push_back(finding.rule);
  return bounds;
}

// 200 us of compute in every step. With 50 us of communication it is 80 % of the wall; with 100 us
// two thirds, too little; with 300 us communication is 60 %.
TEST(BoundTest, ComputeOrCommunicationIsTheLimitNeverBoth) {
  const auto cost = find_by_rule(with_collective(50).trace(), "communication-bound");
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->kind, FindingKind::kCost);
  EXPECT_THAT(cost->verdict.pattern, ::testing::HasSubstr("computed for longer"));
  EXPECT_NEAR(cost->verdict.values.back().real, 0.8, 0.02);
  EXPECT_THAT(bounds_of(with_collective(50).trace()), ::testing::ElementsAre("gpu-bound"));
  for (const std::int64_t collective_us : {100, 300})
    EXPECT_THAT(bounds_of(with_collective(collective_us).trace()),
                ::testing::ElementsAre("communication-bound"))
        << collective_us;
}

// The GPU waits 19 us longer than the pause. Of the step's 289 us that is 31 % behind a pause of
// 70, enough to be host-bound, but communication takes longer: 100.
TEST(BoundTest, TheCpuOrCommunicationIsTheLimitNeverBoth) {
  EXPECT_THAT(bounds_of(with_idle(70)), ::testing::ElementsAre("communication-bound"));
  EXPECT_FALSE(find_by_rule(with_idle(70), "host-bound"));
  EXPECT_THAT(bounds_of(with_idle(100)), ::testing::ElementsAre("host-bound"));
}

TEST(CommunicationBoundTest, IsQuietWhenItIsShort) {
  EXPECT_FALSE(find_by_rule(with_collective(20).trace(), "communication-bound"));
}

// Every step has one pause of 60 us in 200 us of work.
ProgramSketch with_pause(std::int64_t pause_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.wait("aten::nonzero").pass(pause_us).end();
  }
  return program;
}

TEST(GpuIdleTest, SpeaksOfThePauseAndItsCause) {
  const auto finding = find_by_rule(with_pause(60).trace(), "gpu-idle");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->at_stake_ratio, 0.25, 0.06);
  EXPECT_THAT(finding->verdict.values[4].text, ::testing::HasSubstr("waited for the GPU"));
}

TEST(GpuIdleTest, IsCoveredByHostBoundButSpeaksWhenAsked) {
  const Trace trace = loop(4, 10, {.us = 1}).trace();
  EXPECT_TRUE(find_by_rule(trace, "gpu-idle"));
  const auto all = run_rules(*gather_facts(trace));
  const auto run = std::find_if(all->runs.begin(), all->runs.end(),
                                [](const RuleRun& each) { return each.id == "gpu-idle"; });
  ASSERT_NE(run, all->runs.end());
  EXPECT_EQ(run->state, RuleRun::State::kCovered);
  EXPECT_EQ(run->covered_by, "host-bound");
}

TEST(GpuIdleTest, IsQuietBelowTenPercent) {
  EXPECT_FALSE(find_by_rule(with_pause(2).trace(), "gpu-idle"));
}

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

// The same 1000 in one call to the driver instead of the loading.
TEST(HostBoundTest, SaysWhenMostOfTheWaitIsForMemory) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().call("cudaFree", 1000);
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "host-bound");
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

ProgramSketch with_copy(std::string_view name, std::int64_t stream, std::string_view op) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.launch({.name = name,
                    .us = 20,
                    .op = op,
                    .category = "gpu_memcpy",
                    .call = "cudaMemcpyAsync",
                    .stream = stream});
    program.end();
  }
  return program;
}

TEST(ExposedCopyTest, NamesTheCopyThatAddmmMakes) {
  const auto finding = find_by_rule(
      with_copy("Memcpy DtoD (Device -> Device)", 7, "aten::addmm").trace(), "exposed-copy");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 20'000);
  EXPECT_THAT(finding->arithmetic.at(0).pattern, ::testing::HasSubstr("aten::addmm"));
}

TEST(ExposedCopyTest, IsQuietWhenTheCopyRunsBesideCompute) {
  EXPECT_FALSE(find_by_rule(with_copy("Memcpy HtoD (Pinned -> Device)", 9, "aten::copy_").trace(),
                            "exposed-copy"));
}

TEST(PageableCopyTest, SpeaksOfPageableMemory) {
  const auto finding = find_by_rule(
      with_copy("Memcpy HtoD (Pageable -> Device)", 7, "aten::copy_").trace(), "pageable-copy");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);  // of the three steady steps
}

// Found by changing bytes of real traces: steps, work, and no launch at all.
TEST(PageableCopyTest, NeedsNoLaunches) {
  testing::Sketch sketch;
  for (int i = 0; i < 3; ++i) {
    sketch.annotation("ProfilerStep#" + std::to_string(i), i * 100'000, 99'000);
    sketch.slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", i * 100'000 + 10'000, 20'000);
  }
  const auto finding = find_by_rule(sketch.trace(), "pageable-copy");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 20'000);
}

// Copies of 20 us, one behind the other, in every step.
TEST(PageableCopyTest, IsQuietAboutValuesUnlessTheyComeWithData) {
  using Copies = std::vector<std::pair<std::string_view, std::int64_t>>;
  const auto copies_told = [](const Copies& copies) {
    testing::Sketch sketch;
    for (int i = 0; i < 3; ++i) {
      std::int64_t at = i * 200'000;
      sketch.annotation("ProfilerStep#" + std::to_string(i), at, 199'000);
      for (const auto& [name, bytes] : copies)
        sketch.slice("gpu_memcpy", name, at += 20'000, 20'000, {.bytes = bytes});
    }
    const auto finding = find_by_rule(sketch.trace(), "pageable-copy");
    return finding ? finding->verdict.values.at(0).integer : 0;  // in two steady steps
  };
  constexpr std::string_view kUpload = "Memcpy HtoD (Pageable -> Device)";
  constexpr std::string_view kDownload = "Memcpy DtoH (Device -> Pageable)";
  EXPECT_EQ(copies_told({{kDownload, 8}}), 0);
  EXPECT_EQ(copies_told({{kUpload, 8}}), 0);
  EXPECT_EQ(copies_told({{kDownload, 8192}}), 2);
  EXPECT_EQ(copies_told({{kUpload, 8192}, {kUpload, 8}, {kDownload, 8}}), 4);
}

TEST(PageableCopyTest, IsQuietAboutPinnedMemory) {
  EXPECT_FALSE(find_by_rule(with_copy("Memcpy HtoD (Pinned -> Device)", 7, "aten::copy_").trace(),
                            "pageable-copy"));
}

ProgramSketch with_waits(bool in_the_middle) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    if (in_the_middle) program.wait();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  if (!in_the_middle) program.wait();
  return program;
}

// One .item() a step; after it the GPU stands idle until the next launch has returned.
TEST(HostSyncTest, SpeaksOfItemInTheMiddleOfAStep) {
  const auto finding = find_by_rule(with_waits(true).trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->sample_count, 3u);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "aten::item");
}

// Half a millisecond of the CPU's own work behind each wait stays without it. Of the 510 us of a
// gap (the launch call behind it ends 510 us after the last kernel) count the 80 us that the device
// works in a step and the 72 us of the operator that waits (70 us until the device is done, 2 us
// more and its call's edges): 152 us.
TEST(HostSyncTest, CountsWhatTheCpuCouldHaveDoneMeanwhile) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step().launch({.us = 40}).wait().pass(500).launch({.us = 40}).end();
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 152'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(3).integer, 510'000);
}

// cuDNN waits by itself while it tries out algorithms.
TEST(HostSyncTest, IsQuietAboutWaitsInsideAConvolution) {
  const auto program = [](const char* asker) {
    ProgramSketch sketch;
    for (int i = 0; i < 4; ++i)
      sketch.step().launch({.us = 40}).wait(asker).pass(500).launch({.us = 40}).end();
    return sketch.trace();
  };
  EXPECT_TRUE(find_by_rule(program("aten::item"), "host-sync"));
  EXPECT_FALSE(find_by_rule(program("aten::cudnn_convolution"), "host-sync"));
}

TEST(HostSyncTest, NamesTheLineOfTheProgramThatWaits) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step()
        .launch({.us = 40})
        .wait("aten::item", "torch/_tensor.py(12): item;train.py(31): step;train.py(80): main")
        .launch({.us = 40})
        .end();
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  const Sentence& text = finding->evidence.at(0).text;
  EXPECT_THAT(text.pattern, ::testing::HasSubstr("called at {}"));
  EXPECT_EQ(text.values.back().text, "train.py(31): step");
}

// Calls of a runtime whose waiting calls are not known: it cannot be told that nothing waits.
TEST(HostSyncTest, IsNotCheckedWhereTheNamesOfWaitsAreNotKnown) {
  const auto trace = [](std::string_view launch, std::string_view wait) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i)
      program.step().launch({.us = 40, .call = launch}).call(wait, 60).pass(50).end();
    return program.trace();
  };
  EXPECT_EQ(state_of_rule(trace("vendorLaunchKernel", "vendorSynchronize"), "host-sync"),
            RuleRun::State::kNotChecked);
  EXPECT_EQ(state_of_rule(trace("cudaLaunchKernel", "cudaEventQuery"), "host-sync"),
            RuleRun::State::kQuiet);
  EXPECT_EQ(state_of_rule(trace("zeCommandListAppendLaunchKernel", "zeEventHostSynchronize"),
                          "host-sync"),
            RuleRun::State::kFound);
}

TEST(HostSyncTest, IsQuietAboutTheWaitAtTheEnd) {
  EXPECT_FALSE(find_by_rule(with_waits(false).trace(), "host-sync"));
}

ProgramSketch with_malloc(int first_step, int last_step) {
  ProgramSketch program;
  for (int i = 1; i <= 4; ++i) {
    program.step();
    if (i >= first_step && i <= last_step) program.call("cudaMalloc", 100).call("cudaFree", 100);
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  return program;
}

TEST(AllocatorCallsTest, SpeaksOfAllocationsInSteadySteps) {
  const auto finding = find_by_rule(with_malloc(1, 4).trace(), "allocator-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->sample_count, 6u);
}

// 200 us of calls, then four matmuls of 50 us launched in 40: of the step's 240 us the GPU works
// 200 and is idle 40, in which it waits. The rest of the calls ran beside its work: no more than
// those 40 can go.
TEST(AllocatorCallsTest, PromisesNoMoreThanTheIdleTime) {
  const auto finding = find_by_rule(with_malloc(1, 4).trace(), "allocator-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 40'000);
}

// A free that waits for the GPU: 10 to 310 us of each step; the matmul runs from 9 to 111. Without
// the call the next launch comes 300 us earlier: all of the 208 us of idleness may go, not only the
// 199 that lay inside of the call.
TEST(AllocatorCallsTest, CountsTheDelayOfACallThatWaits) {
  ProgramSketch program;
  for (int i = 1; i <= 4; ++i) program.step().launch({.us = 102}).call("cudaFree", 300).end();
  const auto finding = find_by_rule(program.trace(), "allocator-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 208'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 300'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, 199'000);
}

TEST(AllocatorCallsTest, IsQuietAboutTheFirstStep) {
  EXPECT_FALSE(find_by_rule(with_malloc(1, 1).trace(), "allocator-calls"));
}

TEST(TinyKernelsTest, SpeaksOfManyShortKernels) {
  EXPECT_TRUE(find_by_rule(loop(3, 250, {.us = 2}).trace(), "tiny-kernels"));
}

TEST(TinyKernelsTest, IsQuietWhenTheGpuKeepsUp) {
  EXPECT_FALSE(find_by_rule(loop(3, 250, {.us = 9, .call_us = 2}, 0).trace(), "tiny-kernels"));
  EXPECT_FALSE(find_by_rule(loop(3, 50, {.us = 2}).trace(), "tiny-kernels"));  // few
}

TEST(ManyCallsTest, SpeaksOfAnOperatorCalledHundredsOfTimes) {
  const auto finding =
      find_by_rule(loop(3, 300, {.us = 2, .op = "aten::add_"}).trace(), "many-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].text, "aten::add_");
  EXPECT_EQ(finding->verdict.values[1].integer, 300);
}

TEST(ManyCallsTest, IsQuietWhenTheCallsAreHidden) {
  EXPECT_FALSE(find_by_rule(loop(3, 300, {.us = 30, .op = "aten::add_"}).trace(), "many-calls"));
}

ProgramSketch two_kernels(std::int64_t gemm_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k)
      program.launch({.us = gemm_us})
          .launch({.name = "softmax", .us = 40})
          .launch({.name = "add", .us = 40});
    program.end();
  }
  return program;
}

TEST(HotspotKernelTest, SpeaksOfTheKernelThatTakesMost) {
  const auto finding = find_by_rule(two_kernels(100).trace(), "hotspot-kernel");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 400'000);
}

TEST(HotspotKernelTest, IsQuietWhenTimeIsSpread) {
  EXPECT_FALSE(find_by_rule(two_kernels(40).trace(), "hotspot-kernel"));
}

ProgramSketch varying(std::string_view dims, std::string_view slow_dims) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k)
      program.launch({.us = k % 4 == 0 ? 90 : 50, .dims = k % 4 == 0 ? slow_dims : dims});
    program.end();
  }
  return program;
}

TEST(KernelSpreadTest, SpeaksOfEqualCallsOfUnequalLength) {
  const auto finding = find_by_rule(varying("[[8, 8]]", "[[8, 8]]").trace(), "kernel-spread");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 9);  // 3 slow calls in each of 3 steps
  EXPECT_EQ(finding->verdict.values[1].integer, 30);
  EXPECT_EQ(finding->at_stake_ns, 3 * 40'000);
}

TEST(KernelSpreadTest, IsQuietWhenTheShapesExplainIt) {
  EXPECT_FALSE(find_by_rule(varying("[[8, 8]]", "[[16, 16]]").trace(), "kernel-spread"));
}

TEST(KernelSpreadTest, IsNotCheckedWithoutShapes) {
  EXPECT_EQ(state_of_rule(varying("", "").trace(), "kernel-spread"), RuleRun::State::kNotChecked);
}

TEST(CompiledCodeTest, SaysWhatWasFused) {
  const auto finding = find_by_rule(
      loop(3, 4, {.name = "triton_poi_fused_add_relu_0", .us = 20}).trace(), "compiled-code");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
  EXPECT_EQ(finding->verdict.values[1].integer, 2);
}

TEST(CompiledCodeTest, SaysWhenNothingWasFused) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i)
    program.step().begin("Torch-Compiled Region: 0/0").launch({}).end().end();
  const auto finding = find_by_rule(program.trace(), "compiled-code");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, ::testing::HasSubstr("fused nothing"));
}

TEST(CompiledCodeTest, IsQuietOnEagerCode) {
  EXPECT_FALSE(find_by_rule(loop(3, 4, {}).trace(), "compiled-code"));
}

ProgramSketch with_first_step(std::int64_t extra_us, bool by_profiler) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    program.launch({.us = 5});
    if (i == 0 && by_profiler) program.overhead("Activity Buffer Request", extra_us);
    if (i == 0 && !by_profiler) program.cpu_op("aten::cudnn_convolution", extra_us);
    for (int k = 0; k < 9; ++k) program.launch({.us = 5});
    program.end();
  }
  return program;
}

TEST(SlowFirstStepTest, SpeaksAndNamesWhatTookLonger) {
  const auto finding = find_by_rule(with_first_step(400, false).trace(), "slow-first-step");
  ASSERT_TRUE(finding);
  // The others begin when the GPU is done with the step before, 4 us after the CPU began them: 100
  // us each. The first begins with the CPU: 504 us.
  EXPECT_EQ(finding->at_stake_ns, 404'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(1).text, "aten::cudnn_convolution");
}

TEST(SlowFirstStepTest, NamesTheProfilerWhenItWasTheProfiler) {
  const auto finding = find_by_rule(with_first_step(400, true).trace(), "slow-first-step");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.values.back().text, ::testing::HasSubstr("profiler"));
  EXPECT_TRUE(finding->evidence.empty());
}

TEST(SlowFirstStepTest, IsQuietAboutAFirstStepLikeTheOthers) {
  EXPECT_FALSE(find_by_rule(with_first_step(20, false).trace(), "slow-first-step"));
}

ProgramSketch with_lead(std::int64_t first_us, std::int64_t later_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step()
        .pass(1)
        .begin("matmul_add")
        .pass(i == 0 ? first_us : later_us)
        .launch({})
        .end()
        .end();
  return program;
}

TEST(DeadWindowTest, SpeaksOfTheFirstEntryOfARange) {
  const auto finding = find_by_rule(with_lead(228, 5).trace(), "dead-window");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 223'000);
}

// The GPU has 9 ms of work when the range is entered for the first time.
TEST(DeadWindowTest, IsQuietWhenTheGpuIsBusyMeanwhile) {
  ProgramSketch program;
  program.launch({.us = 9000});
  for (int i = 0; i < 4; ++i) program.begin("load").pass(i == 0 ? 900 : 5).launch({.us = 5}).end();
  EXPECT_FALSE(find_by_rule(program.trace(), "dead-window"));
}

TEST(DeadWindowTest, IsQuietWhenEveryEntryTakesAsLong) {
  EXPECT_FALSE(find_by_rule(with_lead(228, 200).trace(), "dead-window"));
}

ProgramSketch with_gap(int step, std::int64_t us, bool every_step) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i) {
    program.step();
    program.launch({.us = 5}).launch({.name = "softmax", .us = 5});
    if (i == step || every_step) program.cpu_op("aten::cat", us);
    program.launch({.name = "add", .us = 5}).end();
  }
  return program;
}

TEST(LoneGapTest, SpeaksOfAGapInOneStep) {
  const auto finding = find_by_rule(with_gap(3, 500, false).trace(), "lone-gap");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[1].integer, 4);  // ProfilerStep#4
}

TEST(LoneGapTest, IsQuietAboutAGapInEveryStep) {
  EXPECT_FALSE(find_by_rule(with_gap(3, 500, true).trace(), "lone-gap"));
}

ProgramSketch with_final_sync(std::int64_t us) {
  ProgramSketch program = loop(3, 4, {.us = 5});
  program.call("cudaDeviceSynchronize", us);
  return program;
}

TEST(FinalSyncTest, SaysThatItIsNormal) {
  const auto finding = find_by_rule(with_final_sync(1780).trace(), "final-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
}

TEST(FinalSyncTest, IsQuietWhenLaunchesFollowOrItIsShort) {
  ProgramSketch program = with_final_sync(1780);
  program.launch({});
  EXPECT_FALSE(find_by_rule(program.trace(), "final-sync"));
  EXPECT_FALSE(find_by_rule(with_final_sync(20).trace(), "final-sync"));
}

TEST(ProfilerStallTest, SpeaksOfActivityBufferRequests) {
  const auto finding = find_by_rule(with_first_step(400, true).trace(), "profiler-stall");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kTrust);
}

TEST(ProfilerStallTest, IsQuietWhenTheRequestHidesBehindTheGpu) {
  ProgramSketch program;
  for (int i = 0; i < 3; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 100});
    program.overhead("Activity Buffer Request", 50).end();
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "profiler-stall"));
}

TEST(EarlierWorkTest, SpeaksOfWorkWithoutALaunchAtTheStart) {
  ProgramSketch program = loop(3, 4, {.us = 50});
  program.sketch().kernel("gemm", ProgramSketch::at(900), ProgramSketch::at(60));
  const auto finding = find_by_rule(program.trace(), "earlier-work");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 1);
}

TEST(EarlierWorkTest, IsQuietAboutALostLaunchInTheMiddle) {
  ProgramSketch program = loop(3, 4, {.us = 50});
  program.sketch().kernel("gemm", ProgramSketch::at(1300), ProgramSketch::at(1));
  EXPECT_FALSE(find_by_rule(program.trace(), "earlier-work"));
}

// All was launched by 1.2 ms; the second piece of work begins at 500 ms.
TEST(EdgeGapTest, SpeaksOfTheGapBesideTheFirstWork) {
  testing::Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    sketch.runtime("cudaLaunchKernel", i * 10'000, 4'000, {.correlation = i + 1});
    sketch.kernel("gemm", i == 0 ? 6'000 : 500'000'000 + i * 100'000, 100'000,
                  {.correlation = i + 1});
  }
  const Trace trace = sketch.trace();
  EXPECT_TRUE(find_by_rule(trace, "edge-gap"));
  EXPECT_TRUE(find_by_rule(trace, "gpu-bound"));
  EXPECT_FALSE(find_by_rule(trace, "gpu-idle"));
}

TEST(EdgeGapTest, IsQuietWhenTheCpuWasLate) {
  testing::Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = i == 0 ? 0 : 500'000'000 + i * 100'000;
    sketch.runtime("cudaLaunchKernel", at, 4'000, {.correlation = i + 1});
    sketch.kernel("gemm", at + 6'000, 100'000, {.correlation = i + 1});
  }
  EXPECT_FALSE(find_by_rule(sketch.trace(), "edge-gap"));
}

}  // namespace
}  // namespace lanescope::explain
