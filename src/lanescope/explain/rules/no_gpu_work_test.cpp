#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::Sketch;

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

TEST(NoGpuWorkTest, CollectivesOfNcclNeedAGpuAndThoseOfGlooDoNot) {
  Sketch nccl;
  nccl.op("aten::mm", 0, 100).annotation("nccl:all_reduce", 200, 50);
  const auto finding = find_by_rule(nccl.trace(), "no-gpu-work");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->verdict.pattern, HasSubstr("NCCL"));
  Sketch gloo;
  gloo.op("aten::mm", 0, 100).annotation("gloo:all_reduce", 200, 50);
  EXPECT_FALSE(find_by_rule(gloo.trace(), "no-gpu-work"));
}

TEST(NoGpuWorkTest, IsQuietAboutProgramsOfTheCpuAndAboutOneKernel) {
  Sketch cpu;
  cpu.op("aten::mm", 0, 100).memory(50, 512, 0).runtime("cudaGetDeviceCount", 200, 5);
  EXPECT_FALSE(find_by_rule(cpu.trace(), "no-gpu-work"));
  Sketch gpu;
  gpu.runtime("cudaLaunchKernel", 0, 50, {.correlation = 1}).kernel("k", 60, 5, {.correlation = 1});
  EXPECT_FALSE(find_by_rule(gpu.trace(), "no-gpu-work"));
}

TEST(NoGpuWorkTest, KnowsLaunchesOfXpus) {
  testing::Sketch sketch;
  for (int i = 0; i < 3; ++i) sketch.runtime("urEnqueueKernelLaunch", us(i * 10), us(4));
  const auto finding = find_by_rule(sketch.trace(), "no-gpu-work");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->sample_count, 3u);
}

}  // namespace
}  // namespace lanescope::explain
