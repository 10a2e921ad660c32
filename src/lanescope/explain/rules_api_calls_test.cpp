// Rules ask one table what a call does (model/api_calls.h): calls that are not the usual ones of
// torch count as those do. Microseconds.
#include <gmock/gmock.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// Four steps of four launches, and in each first these calls.
ProgramSketch calling(std::initializer_list<std::string_view> calls, std::int64_t call_us) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (const std::string_view call : calls) program.call(call, call_us);
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  return program;
}

TEST(ApiCallRulesTest, HostBoundKnowsEveryCallForMemory) {
  for (const char* call : {"cudaMallocAsync", "hipExtMallocWithFlags", "cuMemAlloc_v2"}) {
    const auto finding = find_by_rule(calling({call}, 1000).trace(), "host-bound");
    ASSERT_TRUE(finding);
    EXPECT_THAT(finding->try_next.front(), ::testing::HasSubstr("see allocator-calls")) << call;
  }
}

TEST(ApiCallRulesTest, AllocatorCallsCountsEveryCallForMemory) {
  const auto finding = find_by_rule(calling({"hipExtMallocWithFlags", "hipHostFree"}, 100).trace(),
                                    "allocator-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->sample_count, 6u);  // in three steady steps
  EXPECT_EQ(finding->action.pattern, "Keep shapes the same from step to step");  // AMD's
}

// In each step 40 pairs for 4 launches. In stream order the driver's pool is the cache: no advice
// to switch torch's on.
TEST(ApiCallRulesTest, AllocationsInStreamOrderAreNoSignOfAMissingCache) {
  const auto action = [](std::string_view allocate, std::string_view release) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 40; ++k) program.call(allocate, 10).call(release, 10);
      for (int k = 0; k < 4; ++k) program.launch({.us = 50});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "allocator-calls");
    EXPECT_TRUE(finding);
    EXPECT_EQ(finding ? finding->sample_count : 0, 240u);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action("cudaMalloc", "cudaFree"), ::testing::StartsWith("Unset"));
  EXPECT_THAT(action("cudaMallocAsync", "cudaFreeAsync"), ::testing::StartsWith("Keep shapes"));
}

TEST(ApiCallRulesTest, FirstAllocationsKnowsTheDriversCalls) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 5 && i == 0; ++k) program.call("cuMemAlloc_v2", 100);
    program.launch({.us = 50}).end();
  }
  const auto finding = find_by_rule(program.trace(), "first-allocations");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 5);
}

std::optional<Finding> host_sync_of(std::string_view wait, std::string_view launch) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step().launch({.us = 40, .call = launch}).call(wait, 60).pass(50).end();
  return find_by_rule(program.trace(), "host-sync");
}

TEST(ApiCallRulesTest, HostSyncKnowsCopiesThatBlockAndWaitsOfXpus) {
  for (const char* wait : {"cuMemcpyDtoH_v2", "cudaMemcpy2D", "hipMemcpyDtoH"}) {
    const auto copy = host_sync_of(wait, "cudaLaunchKernel");
    ASSERT_TRUE(copy) << wait;
    EXPECT_THAT(copy->action.pattern, ::testing::StartsWith("Keep the value on the GPU")) << wait;
  }
  EXPECT_TRUE(host_sync_of("urEventWait", "urEnqueueKernelLaunch"));
  EXPECT_TRUE(host_sync_of("urQueueFinish", "zeCommandListAppendLaunchKernel"));
  EXPECT_FALSE(host_sync_of("cuMemcpyDtoD_v2", "cudaLaunchKernel"));
  const auto versioned = host_sync_of("cudaStreamSynchronize_v3020", "cudaLaunchKernel_v7000");
  ASSERT_TRUE(versioned);
  EXPECT_THAT(versioned->action.pattern, ::testing::StartsWith("Remove torch.cuda.synchronize"));
}

// After each wait of 300 us the CPU gives memory back for 1 ms, which is allocator-calls' matter.
TEST(ApiCallRulesTest, HostSyncLeavesEveryCallForMemoryOut) {
  const auto idle_after = [](std::string_view call) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i)
      program.step()
          .launch({.us = 100})
          .call("cudaStreamSynchronize", 300)
          .call(call, 1000)
          .launch({.us = 100})
          .end();
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->verdict.values.at(2).integer : 0;
  };
  EXPECT_EQ(idle_after("cudaGetLastError") - idle_after("cuMemFree_v2"), us(1000));
}

TEST(ApiCallRulesTest, AGraphMayHoldAllocationsInStreamOrderButNoOthers) {
  const auto in_the_way = [](std::string_view call) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 10; ++k) {
        program.launch({.us = 1});
        if (k == 4) program.call(call, 5);
      }
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "graph-opportunity");
    EXPECT_TRUE(finding) << call;
    return finding && finding->kind == FindingKind::kWhere && finding->evidence.size() == 1;
  };
  EXPECT_TRUE(in_the_way("cudaMalloc"));
  EXPECT_TRUE(in_the_way("cuMemFree_v2"));
  EXPECT_FALSE(in_the_way("cudaMallocAsync"));
  EXPECT_FALSE(in_the_way("cudaFreeAsync"));
}

TEST(ApiCallRulesTest, FinalSyncKnowsTheDriversWaitForTheDevice) {
  ProgramSketch program = loop(3, 4, {.us = 5});
  program.call("cuCtxSynchronize", 1780);
  EXPECT_TRUE(find_by_rule(program.trace(), "final-sync"));
}

TEST(ApiCallRulesTest, LazyLoadingKnowsTheCallsThatMentionAKernelFirst) {
  for (const char* call : {"cudaFuncSetAttribute", "cudaGetFuncBySymbol_v11000",
                           "cuModuleGetFunction", "cuKernelGetFunction"}) {
    ProgramSketch program = loop(3, 4, {.us = 5});
    program.call(call, 500);
    program.launch({.us = 5});
    const auto finding = find_by_rule(program.trace(), "lazy-loading");
    ASSERT_TRUE(finding) << call;
    EXPECT_EQ(finding->verdict.values[0].integer, us(500)) << call;
  }
}

TEST(ApiCallRulesTest, NoGpuWorkKnowsLaunchesOfXpus) {
  testing::Sketch sketch;
  for (int i = 0; i < 3; ++i) sketch.runtime("urEnqueueKernelLaunch", us(i * 10), us(4));
  const auto finding = find_by_rule(sketch.trace(), "no-gpu-work");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->sample_count, 3u);
}

}  // namespace
}  // namespace lanescope::explain
