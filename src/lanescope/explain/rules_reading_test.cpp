// What a reader of a whole explanation stumbled over: the same time told twice, advice that does
// not fit the cause, a sum that counts one operator several times. Each with its near miss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramSketch;

Explanation explain_whole(const Trace& trace) {
  const auto facts = gather_facts(trace);
  EXPECT_TRUE(facts);
  auto explanation = run_rules(*facts);
  EXPECT_TRUE(explanation);
  return std::move(*explanation);
}

const RuleRun& run_of(const Explanation& explanation, std::string_view id) {
  return *std::find_if(explanation.runs.begin(), explanation.runs.end(),
                       [&](const RuleRun& run) { return run.id == id; });
}

// A copy of pageable memory (100 us) and one of pinned memory in each step, nothing beside them.
ProgramSketch copying(std::int64_t pinned_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 100});
    program.launch({.name = "Memcpy HtoD (Pageable -> Device)",
                    .us = 100,
                    .op = "aten::copy_",
                    .category = "gpu_memcpy",
                    .call = "cudaMemcpyAsync"});
    if (pinned_us > 0)
      program.launch({.name = "Memcpy HtoD (Pinned -> Device)",
                      .us = pinned_us,
                      .op = "aten::copy_",
                      .category = "gpu_memcpy",
                      .call = "cudaMemcpyAsync"});
    program.end();
  }
  return program;
}

TEST(CoveredTest, AFindingThatAnotherTellsMoreExactlyIsLeftOut) {
  const Explanation explanation = explain_whole(copying(0).trace());
  EXPECT_EQ(run_of(explanation, "pageable-copy").state, RuleRun::State::kFound);
  EXPECT_EQ(run_of(explanation, "exposed-copy").state, RuleRun::State::kCovered);
  EXPECT_EQ(run_of(explanation, "exposed-copy").covered_by, "pageable-copy");
  for (const Finding& finding : explanation.findings) EXPECT_NE(finding.rule, "exposed-copy");
}

// 40 of 140 us are another copy's: the general finding says something that the other does not.
TEST(CoveredTest, AFindingOfWhichAPartIsUntoldStays) {
  const Explanation explanation = explain_whole(copying(40).trace());
  EXPECT_EQ(run_of(explanation, "pageable-copy").state, RuleRun::State::kFound);
  EXPECT_EQ(run_of(explanation, "exposed-copy").state, RuleRun::State::kFound);
}

TEST(CoveredTest, ARuleThatIsAskedByIdIsNeverCovered) {
  const Trace trace = copying(0).trace();
  const auto facts = gather_facts(trace);
  const auto explanation =
      run_rules(*facts, {.only = {"exposed-copy", "pageable-copy"}, .off = {}});
  ASSERT_TRUE(explanation);
  EXPECT_EQ(explanation->findings.size(), 2u);
}

// An operator that waits `waits` times, 300 us each, for `upload`s or for values.
ProgramSketch waiting(int waits, bool upload) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 100});
    const std::int64_t start = program.cpu_us();
    if (upload)
      program.launch({.name = "Memcpy HtoD (Pageable -> Device)",
                      .us = 5,
                      .op = "aten::copy_",
                      .category = "gpu_memcpy",
                      .call = "cudaMemcpyAsync"});
    for (int k = 0; k < waits; ++k) program.call("cudaStreamSynchronize", 300);
    program.sketch().op(upload ? "aten::to" : "aten::nonzero", us(start),
                        us(program.cpu_us() - start));
    program.pass(50).launch({.us = 100}).end();
  }
  return program;
}

TEST(HostSyncReadingTest, AnOperatorThatWaitsTwiceCountsOnce) {
  const auto finding = find_by_rule(waiting(2, false).trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, us(600));
}

TEST(HostSyncReadingTest, AdviceForUploadsIsPinnedMemoryAndForValuesIsNot) {
  const auto upload = find_by_rule(waiting(1, true).trace(), "host-sync");
  ASSERT_TRUE(upload);
  EXPECT_THAT(upload->try_next, Contains(HasSubstr("pinned memory")));
  EXPECT_THAT(upload->try_next, Not(Contains(HasSubstr(".item()"))));
  const auto value = find_by_rule(waiting(1, false).trace(), "host-sync");
  ASSERT_TRUE(value);
  EXPECT_THAT(value->try_next, Not(Contains(HasSubstr("pinned memory"))));
  EXPECT_THAT(value->try_next, Contains(HasSubstr(".item()")));
}

// Old traces file the step's range under the operators: it is nobody who asks.
TEST(HostSyncReadingTest, TheRangeOfAStepIsNoOperator) {
  ProgramSketch program;
  for (int i = 1; i <= 4; ++i) {
    const std::int64_t start = program.cpu_us();
    program.launch({.us = 100}).call("cudaStreamSynchronize", 300).pass(50).launch({.us = 100});
    program.sketch().op("ProfilerStep#" + std::to_string(i), us(start),
                        us(program.cpu_us() - start));
  }
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "cudaStreamSynchronize");
}

// A wait's own record (cuda_sync) is joined to the call by its correlation id and is no launch: the
// last synchronize ends the recording, and the recording does not begin with a query of an event.
TEST(SyncRecordTest, TheRecordOfAWaitIsNoLaunch) {
  const auto recording = [](bool with_records) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) program.launch({.us = 500});
    const std::int64_t start = program.cpu_us();
    program.sketch().runtime("cudaDeviceSynchronize", us(start), us(2500), {.correlation = 900});
    program.sketch().runtime("cudaEventQuery", us(900), us(5), {.correlation = 901});
    if (with_records) {
      program.sketch().slice("cuda_sync", "Context Sync", us(start + 1), us(2499),
                             {.stream = 7, .correlation = 900});
      program.sketch().slice("cuda_sync", "Event Sync", us(902), us(2),
                             {.stream = 7, .correlation = 901});
    }
    return program.trace();
  };
  for (const bool with_records : {false, true}) {
    const Trace trace = recording(with_records);
    EXPECT_FALSE(find_by_rule(trace, "host-sync")) << with_records;
    EXPECT_TRUE(find_by_rule(trace, "final-sync")) << with_records;
    // From the first launch call (1003 us) to the last work: 12 us later 4 x 500 us.
    EXPECT_EQ(gather_facts(trace)->wall.partition.wall_ns, us(2006)) << with_records;
  }
}

// After each wait of 300 us the CPU frees memory for 1 ms, waits for a batch, or only thinks: the
// first two are no part of what the wait costs.
TEST(HostSyncReadingTest, FreeingMemoryOrWaitingForABatchIsNotTheWaitsCost) {
  enum class Does { kThink, kFree, kLoad };
  const auto idle_after = [](Does does) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 100}).call("cudaStreamSynchronize", 300);
      if (does == Does::kLoad) program.begin("enumerate(DataLoader)#_SingleProcess.__next__");
      if (does == Does::kFree)
        program.call("cudaFree", 1000);
      else
        program.pass(1000);
      if (does == Does::kLoad) program.end();
      program.pass(50).launch({.us = 100}).end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->verdict.values.at(2).integer : 0;
  };
  EXPECT_EQ(idle_after(Does::kThink) - idle_after(Does::kFree), us(1000));
  EXPECT_EQ(idle_after(Does::kThink) - idle_after(Does::kLoad), us(1000));
}

// Norms of the gradients and `reads` numbers of them before each optimizer step.
ProgramSketch reading_norms(int reads) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    program.begin("autograd::engine::evaluate_function: MmBackward0").pass(1);
    program.launch({.us = 300}).end();
    program.launch({.us = 10, .op = "aten::_foreach_norm"});
    for (int k = 0; k < reads; ++k) program.wait("aten::item").pass(30).launch({.us = 10});
    program.begin("Optimizer.step#SGD.step").launch({.us = 50}).end().end();
  }
  return program;
}

TEST(ScalerSyncReadingTest, OneNumberIsClippingALoopOfThemIsNot) {
  EXPECT_TRUE(find_by_rule(reading_norms(1).trace(), "scaler-sync"));
  EXPECT_FALSE(find_by_rule(reading_norms(3).trace(), "scaler-sync"));
  EXPECT_TRUE(find_by_rule(reading_norms(3).trace(), "host-sync"));
}

// 10 allocations and 10 frees a step, by turns or each in one run, with `kernels` kernels.
ProgramSketch allocating(bool by_turns, int kernels, const std::string& api = "cuda") {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) {
      program.call(api + "Malloc", 20);
      if (by_turns) program.call(api + "Free", 20);
    }
    for (int k = 0; k < 10 && !by_turns; ++k) program.call(api + "Free", 20);
    for (int k = 0; k < kernels; ++k) program.launch({.us = 5});
    program.end();
  }
  return program;
}

TEST(AllocatorReadingTest, TellsACacheThatIsOffFromAFlushAndFromAFewWorkspaces) {
  const auto says_off = [](const Trace& trace) {
    const auto finding = find_by_rule(trace, "allocator-calls");
    EXPECT_TRUE(finding);
    return finding && finding->try_next.at(0).find("NO_CUDA_MEMORY_CACHING") != std::string::npos;
  };
  EXPECT_TRUE(says_off(allocating(true, 10).trace()));
  EXPECT_FALSE(says_off(allocating(false, 10).trace()));
  EXPECT_FALSE(says_off(allocating(true, 200).trace()));
}

TEST(AllocatorReadingTest, NamesTheVariableOfTheRuntimeThatIsUsed) {
  const auto on_rocm = find_by_rule(allocating(true, 10, "hip").trace(), "allocator-calls");
  ASSERT_TRUE(on_rocm);
  EXPECT_THAT(on_rocm->try_next.at(0), HasSubstr("PYTORCH_NO_HIP_MEMORY_CACHING"));
  const auto on_cuda = find_by_rule(allocating(true, 10).trace(), "allocator-calls");
  ASSERT_TRUE(on_cuda);
  EXPECT_THAT(on_cuda->try_next.at(0), Not(HasSubstr("HIP")));
}

// 20 quick launches, then one of another kernel that takes 5 ms, behind `busy_us` of work.
ProgramSketch lone_slow_launch(std::int64_t busy_us) {
  ProgramSketch program;
  for (int i = 0; i < 20; ++i) program.launch({.us = 1});
  program.launch({.us = busy_us});
  program.launch({.name = "rare", .us = 5, .call_us = 5000});
  return program;
}

TEST(LazyLoadingReadingTest, ALoneLaunchOfMillisecondsCountsUnlessTheGpuWorksMeanwhile) {
  const auto finding = find_by_rule(lone_slow_launch(1).trace(), "lazy-loading");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, us(5000));
  EXPECT_FALSE(find_by_rule(lone_slow_launch(5000).trace(), "lazy-loading"));
}

// Kernels without launch calls, 5 us of every 100: nothing tells what the GPU waited for.
TEST(IdleHeadlineTest, AMostlyIdleGpuIsNotCalledWithoutALimit) {
  testing::Sketch sketch;
  for (int i = 0; i < 20; ++i) sketch.slice("kernel", "k", us(100 * i), us(5), {.stream = 7});
  const Explanation idle = explain_whole(sketch.trace());
  EXPECT_THAT(idle.headline.pattern, ::testing::StartsWith("Idle:"));
  ASSERT_FALSE(idle.findings.empty());
  EXPECT_EQ(idle.findings[0].rule, "gpu-idle");
  EXPECT_THAT(idle.findings[0].try_next.at(0), HasSubstr("ProfilerActivity.CPU"));
  testing::Sketch busier;
  for (int i = 0; i < 20; ++i) busier.slice("kernel", "k", us(100 * i), us(70), {.stream = 7});
  EXPECT_THAT(explain_whole(busier.trace()).headline.pattern, HasSubstr("No single limit"));
}

// Three steps of 1000: aten::linear [100, 300) with aten::t [102, 110) and aten::addmm [120, 280),
// which may hold a cudaLaunchKernel [200, 210), and aten::relu [400, 450).
Trace nested_operators(bool nested) {
  testing::Sketch sketch;
  for (int step = 0; step < 3; ++step) {
    const std::int64_t at = us(1000 * step);
    sketch.annotation("ProfilerStep#" + std::to_string(step), at, us(1000));
    sketch.op("aten::linear", at + us(100), us(200));
    if (nested) {
      sketch.op("aten::t", at + us(102), us(8));
      sketch.op("aten::addmm", at + us(120), us(160));
      sketch.runtime("cudaLaunchKernel", at + us(200), us(10));
    }
    sketch.op("aten::relu", at + us(400), us(50));
  }
  return sketch.trace();
}

TEST(SelfTotalTest, SaysWhatATotalIsMadeOf) {
  const auto finding = find_by_rule(nested_operators(true), "self-total");
  ASSERT_TRUE(finding);
  const auto& values = finding->verdict.values;
  ASSERT_EQ(values.size(), 6u);
  EXPECT_EQ(values[0].text, "aten::linear");
  EXPECT_EQ(values[1].integer, us(200));
  EXPECT_EQ(values[2].integer, us(32));                  // 200 - 8 - 160
  EXPECT_EQ(values[3].integer, us(200 + 8 + 160 + 50));  // totals
  EXPECT_DOUBLE_EQ(values[4].real, 418.0 / 250);
  EXPECT_EQ(values[5].integer, us(250));  // linear and relu
  ASSERT_EQ(finding->arithmetic.size(), 1u);
  EXPECT_EQ(finding->arithmetic[0].pattern, "{} = itself {} + {} {} + {} {}");
  EXPECT_EQ(finding->arithmetic[0].values[2].text, "aten::addmm");
  EXPECT_EQ(finding->arithmetic[0].values[3].integer, us(160));
  EXPECT_EQ(finding->arithmetic[0].values[5].integer, us(8));
}

TEST(SelfTotalTest, IsQuietWhereOperatorsDoNotCallEachOther) {
  EXPECT_FALSE(find_by_rule(nested_operators(false), "self-total"));
}

TEST(SelfTotalTest, SpeaksOnlyWhenAsked) {
  const Explanation all = explain_whole(nested_operators(true));
  EXPECT_TRUE(std::none_of(all.runs.begin(), all.runs.end(),
                           [](const RuleRun& run) { return run.id == "self-total"; }));
}

}  // namespace
}  // namespace lanescope::explain
