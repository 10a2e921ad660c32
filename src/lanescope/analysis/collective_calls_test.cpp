#include "lanescope/analysis/collective_calls.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

std::vector<CollectiveCall> calls_of(const Trace& trace) {
  const LaunchLinks links = compute_launch_links(trace);
  std::vector<CollectiveCall> all;
  for (const DeviceTimeline& timeline : compute_device_timelines(trace, links))
    for (const CollectiveCall& call : find_collective_calls(trace, links, timeline))
      all.push_back(call);
  return all;
}

// 1000 BFloat16 are 2000 bytes.
TEST(CollectiveCallsTest, ReadsTheKernelsOwnArguments) {
  Sketch sketch;
  sketch.kernel("gemm", 0, 10)
      .kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 20, 10,
              {.collective = "allreduce",
               .dtype = "BFloat16",
               .group = "7",
               .elements = 1000,
               .collective_seq = 3});
  const Trace trace = sketch.trace();
  const auto calls = calls_of(trace);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(trace.text(calls[0].name), "allreduce");
  EXPECT_EQ(trace.text(calls[0].group), "7");
  EXPECT_EQ(calls[0].message_bytes, 2000);
  EXPECT_EQ(calls[0].sequence, 3);
}

TEST(CollectiveCallsTest, ElseThoseOfTheEventAroundTheLaunch) {
  Sketch sketch;
  sketch
      .slice("cpu_op", "record_param_comms", 0, 100,
             {.collective = "broadcast", .dtype = "Long", .elements = 5})
      .runtime("cudaLaunchKernelExC", 10, 20, {.correlation = 1})
      .kernel("ncclDevKernel_Broadcast_RING_LL", 40, 10, {.correlation = 1});
  const Trace trace = sketch.trace();
  const auto calls = calls_of(trace);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(trace.text(calls[0].name), "broadcast");
  EXPECT_EQ(calls[0].message_bytes, 40);
}

TEST(CollectiveCallsTest, WhatIsNotSaidIsUnknown) {
  Sketch sketch;
  sketch.kernel("ncclKernel_AllReduce", 0, 10)
      .kernel("ncclKernel_AllReduce", 20, 10,
              {.collective = "allreduce", .dtype = "Quaternion", .elements = 5})
      .kernel("ncclKernel_AllReduce", 40, 10,
              {.collective = "allreduce", .elements = std::int64_t{1} << 60});
  const auto calls = calls_of(sketch.trace());
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].name, kNone<StringId>);
  for (const CollectiveCall& call : calls) EXPECT_FALSE(call.message_bytes);
}

}  // namespace
}  // namespace lanescope::analysis
