#include "lanescope/analysis/hardware_use.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using lanescope::testing::Sketch;

// `count` samples of 100 ns each.
HardwareSamples samples_of(std::size_t count) {
  HardwareSamples samples;
  samples.interval_ns = 100;
  samples.dram_peak_bytes_per_second = 4e12;
  for (std::size_t i = 0; i < count; ++i) {
    samples.start_ns.push_back(static_cast<std::int64_t>(i) * 100);
    samples.length_ns.push_back(100);
    samples.sm_active.push_back(80);
    samples.tensor_active.push_back(40);
    samples.dram_read.push_back(1.5);
    samples.dram_write.push_back(0.5);
    samples.sm_clock.push_back(i % 2 == 0 ? 1400 : 1500);
  }
  return samples;
}

TEST(HardwareUseTest, ALongKernelHasTheRatesOfTheSamplesInsideIt) {
  const std::vector<MeasuredPiece> pieces = {{0, 1000, 0}};
  const auto uses = measure_use(samples_of(10), pieces, 1);
  EXPECT_EQ(uses[0].sample_count, 10u);
  EXPECT_EQ(uses[0].sampled_ns, 1000);
  EXPECT_DOUBLE_EQ(*uses[0].sm_active_ratio, 0.8);
  EXPECT_DOUBLE_EQ(*uses[0].tensor_active_ratio, 0.4);
  EXPECT_DOUBLE_EQ(*uses[0].dram_read_bytes_per_second, 1.5e9);
  EXPECT_DOUBLE_EQ(*uses[0].dram_write_bytes_per_second, 0.5e9);
  EXPECT_DOUBLE_EQ(*uses[0].dram_peak_ratio, 2e9 / 4e12);
  EXPECT_DOUBLE_EQ(*uses[0].dram_bytes_per_call, 2000);  // 2 bytes per ns, 1000 ns
  EXPECT_DOUBLE_EQ(*uses[0].sm_clock_mhz, 1450);
}

// Ten calls of 30 ns, two in each sample: it covers 60 of 100 ns, so the rates are 1 / 0.6 higher.
TEST(HardwareUseTest, ShortKernelsArePooled) {
  std::vector<MeasuredPiece> pieces;
  for (std::int64_t i = 0; i < 10; ++i) pieces.push_back({i * 50, i * 50 + 30, 0});
  const auto uses = measure_use(samples_of(5), pieces, 1);
  EXPECT_EQ(uses[0].sample_count, 5u);
  EXPECT_EQ(uses[0].sampled_ns, 300);
  EXPECT_DOUBLE_EQ(*uses[0].dram_read_bytes_per_second, 1.5e9 / 0.6);
  EXPECT_DOUBLE_EQ(*uses[0].sm_active_ratio, 1);  // 80 % of the time in 60 % of it
  EXPECT_DOUBLE_EQ(*uses[0].dram_bytes_per_call, 2 / 0.6 * 30);
  EXPECT_DOUBLE_EQ(*uses[0].sm_clock_mhz, (3 * 1400 + 2 * 1500) / 5.0);  // runs in pauses, too
}

TEST(HardwareUseTest, ASampleWithTwoGroupsCountsForNone) {
  // Sample 2 has a bit of the second group; so do samples 5 and later.
  const std::vector<MeasuredPiece> pieces = {{0, 1000, 0}, {250, 260, 1}, {500, 1000, 1}};
  const auto uses = measure_use(samples_of(10), pieces, 2);
  EXPECT_EQ(uses[0].sample_count, 4u);
  EXPECT_EQ(uses[1].sample_count, 0u);
}

TEST(HardwareUseTest, NothingIsSaidOnFewSamplesOrLittleCoverage) {
  const std::vector<MeasuredPiece> pieces = {{0, 400, 0}, {400, 449, 1}, {500, 549, 1}};
  const auto uses = measure_use(samples_of(10), pieces, 2);
  EXPECT_EQ(uses[0].sample_count, 4u);
  EXPECT_FALSE(uses[0].sm_active_ratio);
  EXPECT_FALSE(uses[0].dram_bytes_per_call);
  EXPECT_FALSE(uses[0].sm_clock_mhz);
  EXPECT_EQ(uses[1].sample_count, 0u);  // 49 of 100 ns
}

TEST(HardwareUseTest, GapsBetweenSamplesAreNoSamples) {
  HardwareSamples samples = samples_of(10);
  samples.length_ns[3] = 0;
  const std::vector<MeasuredPiece> pieces = {{0, 1000, 0}};
  EXPECT_EQ(measure_use(samples, pieces, 1)[0].sample_count, 9u);
}

TEST(HardwareUseTest, SamplesAreFoundInATrace) {
  Sketch sketch;
  sketch.kernel("k", 0, 1000);
  sketch.metadata("lanescope_hardware",
                  R"([{"device": 1, "interval_ns": 7}, {"device": 0, "interval_ns": 100, )"
                  R"("dram_peak_bytes_per_second": 1000}])");
  Scalar pid;
  pid.number = 0;
  TraceBuilder& builder = sketch.builder();
  const TrackId active = builder.counter_track(pid, "SM active", "%"),
                read = builder.counter_track(pid, "DRAM read", "GB/s");
  for (const std::int64_t time : {0, 100, 400, 500}) {
    builder.add_counter(active, time, 10);
    builder.add_counter(read, time, 2);
  }
  const Trace trace = std::move(sketch).trace();
  const auto samples = find_hardware_samples(trace, 0);
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples->start_ns, (std::vector<std::int64_t>{0, 100, 400, 500}));
  // From 100 to 400 samples are missing; the last one's end is unknown.
  EXPECT_EQ(samples->length_ns, (std::vector<std::int64_t>{100, 0, 100, 0}));
  EXPECT_EQ(samples->dram_read, (std::vector<double>{2, 2, 2, 2}));
  EXPECT_TRUE(samples->tensor_active.empty());
  EXPECT_FALSE(find_hardware_samples(trace, 1));  // described, but without samples
  EXPECT_FALSE(find_hardware_samples(trace, 2));
}

}  // namespace
}  // namespace lanescope::analysis
