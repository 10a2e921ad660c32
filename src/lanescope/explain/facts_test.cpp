// What is gathered about a trace before any rule runs, and when it cannot be.
#include "lanescope/explain/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

constexpr std::int64_t kDayNs = 86'400'000'000'000;

Trace kernels_apart_ns(std::int64_t apart_ns) {
  Sketch sketch;
  sketch.kernel("gemm", 0, 1000);
  sketch.kernel("gemm", apart_ns, 1000);
  return sketch.trace();
}

TEST(FactsTest, TimesWithin104DaysAreOneRecording) {
  EXPECT_TRUE(gather_facts(kernels_apart_ns(100 * kDayNs), {}).has_value());
}

// 731 days are 2.0 years of 365.25 days.
TEST(FactsTest, TimesFurtherApartAreAnErrorThatNamesTheEvents) {
  const auto facts = gather_facts(kernels_apart_ns(731 * kDayNs), {});
  ASSERT_FALSE(facts.has_value());
  EXPECT_EQ(facts.error().code, Errc::kCorruptInput);
  EXPECT_THAT(facts.error().message,
              ::testing::StartsWith(
                  "expected times within 104 days, found 2.0 years from event 1 to event 2"));
}

// Nothing marks steps, and after the last copy (ends at 300) an operator of the CPU runs from 320 to 1,000. The GPU is idle for 40 ns
// before the kernel [140, 200), for 50 between it and the copy [250, 300), and for 700 after it.
TEST(FactsTest, OperatorsAfterTheLastGpuWorkLetTheGpuWaitForTheCpu) {
  Sketch sketch;
  sketch.op("aten::mm", 100, 30);
  sketch.runtime("cudaLaunchKernel", 110, 10, {.correlation = 1});
  sketch.kernel("gemm", 140, 60, {.correlation = 1});
  sketch.op("aten::copy_", 210, 30);
  sketch.runtime("cudaMemcpyAsync", 215, 10, {.correlation = 2});
  sketch.slice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 250, 50,
               {.stream = 7, .correlation = 2});
  sketch.op("aten::argmax", 320, 680);
  const Trace trace = sketch.trace();
  const auto facts = gather_facts(trace, {});
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->wall.partition.wall_ns, 1'000 - 110);
  EXPECT_GE(facts->waiting_for_cpu_ns(), 700);
  EXPECT_EQ(facts->wall.idle_by(analysis::IdleCause::kAfterLastWork), 0);
}

// The steps are those of the rank whose device 0 is. Device 1, of another rank, works before and after
// them: [0, 10) and [400, 410). Its gap of 390 ns is in no step of the first rank.
TEST(FactsTest, InATraceOfRanksEachDeviceHasTheGapsOfItsOwnWork) {
  for (const bool is_merged : {false, true}) {
    Sketch sketch;
    sketch.annotation("ProfilerStep#1", 100, 200);
    sketch.runtime("cudaLaunchKernel", 110, 10, {.correlation = 1});
    sketch.kernel("gemm", 130, 100, {.correlation = 1});
    sketch.kernel("nccl", 0, 10, {.device = 1, .stream = 9, .correlation = 8});
    sketch.kernel("nccl", 400, 10, {.device = 1, .stream = 9, .correlation = 9});
    if (is_merged) sketch.builder().add_metadata("lanescope_merged_ranks", "2");
    const Trace trace = sketch.trace();
    const auto facts = gather_facts(trace, {});
    ASSERT_TRUE(facts.has_value());
    ASSERT_EQ(facts->devices.size(), 2u);
    const auto& gaps = facts->devices[1].gaps.gaps;
    const auto own = std::count_if(gaps.begin(), gaps.end(), [](const analysis::Gap& gap) {
      return gap.start_ns == 10 && gap.end_ns == 400;
    });
    EXPECT_EQ(own, is_merged ? 1 : 0);
  }
}

}  // namespace
}  // namespace lanescope::explain
