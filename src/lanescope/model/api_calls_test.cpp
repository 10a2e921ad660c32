#include "lanescope/model/api_calls.h"

#include <gtest/gtest.h>

#include <utility>

#include "lanescope/model/trace_builder.h"

namespace lanescope {
namespace {

using namespace api_effect;

ApiEffects effects_of(std::string_view name) { return find_api_call(name).effects(); }

TEST(ApiCallsTest, EachRuntimesCallsHaveTheirEffects) {
  for (const auto& [name, effects] : {
           std::pair<std::string_view, ApiEffects>{"cudaLaunchKernel", kLaunchesKernel},
           {"cuLaunchKernelEx", kLaunchesKernel},
           {"hipExtModuleLaunchKernel", kLaunchesKernel},
           {"urEnqueueKernelLaunchWithArgsExp", kLaunchesKernel},
           {"zeCommandListAppendLaunchKernelWithArguments", kLaunchesKernel},
           {"hipGraphLaunch", kLaunchesGraph},
           {"cudaMemcpyAsync", kCopies},
           {"cudaMemcpy", kCopies | kBlocks},
           {"hipMemcpyWithStream", kCopies | kBlocks},
           {"cuMemcpyDtoD_v2", kCopies},
           {"cuMemsetD32Async", kSets},
           {"cudaDeviceSynchronize", kBlocks | kWaitsForDevice},
           {"cuCtxSynchronize", kBlocks | kWaitsForDevice},
           {"hipEventSynchronize", kBlocks},
           {"urEventWait", kBlocks},
           {"aclrtSynchronizeStreamWithTimeout", kBlocks},
           {"synchronizeStream", kBlocks},
           {"cudaEventQuery", kQueries},
           {"cudaEventRecordWithFlags", kRecordsEvent},
           {"hipStreamWaitEvent", kStreamWaits},
           {"enqueueCommand waitOnEvent", kStreamWaits},
           {"cudaMallocAsync", kAllocates | kInStreamOrder},
           {"hipExtMallocWithFlags", kAllocates},
           {"cuMemSetAccess", kAllocates},
           {"cudaFreeAsync", kFrees | kInStreamOrder},
           {"zeMemFree", kFrees},
           {"cuStreamBeginCapture_v2", kBeginsCapture},
           {"cudaStreamEndCapture", kEndsCapture},
           {"hipModuleLoadData", kLoadsCode},
           {"cudaFuncGetAttributes", kMayLoadCode},
           {"hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", kAsksOccupancy},
       })
    EXPECT_EQ(effects_of(name), effects) << name;
}

TEST(ApiCallsTest, CallsWithoutAnEffectAreKnown) {
  for (const char* name : {"cudaStreamIsCapturing", "cudaGetLastError", "cudaLaunchHostFunc",
                           "hipGetDevicePropertiesR0600", "zeKernelCreate", "aclrtGetDevice"}) {
    EXPECT_TRUE(find_api_call(name).is_known()) << name;
    EXPECT_EQ(effects_of(name), 0u) << name;
  }
}

TEST(ApiCallsTest, VersionsAndDefaultStreamsAtTheEndAreNoPartOfTheName) {
  for (const char* name : {"cudaMemcpyAsync_v3020", "cudaMemcpyAsync_ptsz",
                           "cudaMemcpyAsync_ptsz_v7000", "hipMemcpyAsync_spt"})
    EXPECT_EQ(effects_of(name), kCopies) << name;
  EXPECT_EQ(split_api_name("cudaStreamGetCaptureInfo_v2_v11030").stem, "StreamGetCaptureInfo");
  EXPECT_EQ(effects_of("cuMemAlloc_v2"), kAllocates);
  EXPECT_EQ(effects_of("cudaMemset_ptds"), kSets);
  for (const char* name : {"cudaMemset_v", "cudaMemset_vx", "cudaMemset_mine", "cudaMemset_"})
    EXPECT_FALSE(find_api_call(name).is_known()) << name;
}

TEST(ApiCallsTest, ThePrefixNamesTheRuntime) {
  EXPECT_EQ(find_api_call("cudaMalloc").runtime(), ApiRuntime::kCudaRuntime);
  EXPECT_EQ(find_api_call("cuMemAlloc").runtime(), ApiRuntime::kCudaDriver);
  EXPECT_EQ(find_api_call("hipMalloc").runtime(), ApiRuntime::kHip);
  EXPECT_EQ(find_api_call("__cudaLaunchKernel_ptsz").runtime(), ApiRuntime::kCudaRuntime);
  EXPECT_EQ(find_api_call("cu64MemAlloc").runtime(), ApiRuntime::kCudaDriver);
  EXPECT_EQ(find_api_call("zeMemFree").runtime(), ApiRuntime::kLevelZero);
  EXPECT_EQ(find_api_call("piQueueFinish").runtime(), ApiRuntime::kSycl);
}

// Moore Threads' Kineto writes CUDA's names with its own prefixes.
TEST(ApiCallsTest, MusaHasTheNamesOfCuda) {
  EXPECT_EQ(effects_of("musaLaunchKernel"), kLaunchesKernel);
  EXPECT_EQ(effects_of("muMemcpyDtoHAsync_v2"), kCopies);
  EXPECT_EQ(find_api_call("musaLaunchKernel").runtime(), ApiRuntime::kMusa);
}

TEST(ApiCallsTest, NothingIsGuessedOfOtherNames) {
  for (const char* name :
       {"", "cuda", "INVALID", "LaunchKernel", "Malloc", "cudaLaunchKernelOfMine", "myMemcpyAsync",
        "curandGenerate", "hipsparseCreate", "cuda runtime call #9999"}) {
    EXPECT_FALSE(find_api_call(name).is_known()) << name;
    EXPECT_EQ(effects_of(name), 0u) << name;
  }
}

TEST(ApiCallsTest, ATraceAnswersForItsApiCallsOnly) {
  TraceBuilder builder;
  const Scalar one{false, 1, kNone<StringId>};
  const TrackId thread = builder.thread_track(one, one);
  const auto add = [&](const char* category, StringId name, std::int64_t start_ns) {
    builder.add_slice(thread, builder.category(category), name, start_ns, 5, kNone<ArgsId>);
  };
  add("user_annotation", builder.intern("cudaMalloc"), 0);
  add("cuda_runtime", builder.intern("cudaMalloc"), 10);
  add("cuda_runtime", builder.intern("of another runtime"), 20);
  add("cuda_runtime", kNone<StringId>, 30);
  add("cpu_op", builder.intern("the last name"), 40);
  const Trace trace = std::move(*std::move(builder).finish());
  EXPECT_FALSE(trace.api_call(SliceId{0}).is_known());
  EXPECT_TRUE(trace.api_call(SliceId{1}).does(kAllocates));
  for (const std::uint32_t unknown : {2u, 3u, 4u})
    EXPECT_FALSE(trace.api_call(SliceId{unknown}).is_known()) << unknown;
}

}  // namespace
}  // namespace lanescope
