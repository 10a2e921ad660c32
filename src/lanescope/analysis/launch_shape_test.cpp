#include "lanescope/analysis/launch_shape.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

GpuDevice h200() {
  return parse_gpu_devices(
      R"([{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132,
          "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "warpSize": 32,
          "sharedMemPerMultiprocessor": 233472}])")[0];
}

std::optional<LaunchShape> shape_of(const testing::Fields& fields, std::string_view name = "k",
                                    const OperatorWork* work = nullptr,
                                    const GpuDevice& device = h200()) {
  testing::Sketch sketch;
  sketch.kernel(name, 0, 1000, fields);
  const Trace trace = sketch.trace();
  return compute_launch_shape(trace, SliceId{0}, device, names::parse_kernel_name(name), work);
}

// 64 registers a thread: 65536 / (64 * 1024) = one block on each of 132 multiprocessors.
TEST(LaunchShapeTest, CountsWavesOfOneBlockEach) {
  const auto shape =
      shape_of({.grid = "[99, 2, 1]", .block = "[1024, 1, 1]", .registers = 64, .shared_bytes = 0});
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->blocks, 198);
  EXPECT_EQ(shape->slots, 132);
  EXPECT_DOUBLE_EQ(shape->waves(), 1.5);
  EXPECT_DOUBLE_EQ(shape->wave_efficiency(), 0.75);
  EXPECT_FALSE(shape->is_persistent);
}

// Two blocks fit at once: 396 blocks are 1.5 waves of 264, but three for each multiprocessor.
TEST(LaunchShapeTest, BlocksThatShareAMultiprocessorWasteLess) {
  const auto shape =
      shape_of({.grid = "[396, 1, 1]", .block = "[512, 1, 1]", .registers = 64, .shared_bytes = 0});
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->slots, 264);
  EXPECT_DOUBLE_EQ(shape->waves(), 1.5);
  EXPECT_DOUBLE_EQ(shape->wave_efficiency(), 1.0);
}

// 4096 x 8192 in tiles of 256 x 128: 16 * 64 = 1024 tiles for 132 blocks: 7.76 waves of 8.
TEST(LaunchShapeTest, TellsPersistentKernelsByTheirTiles) {
  OperatorWork work;
  work.gemm = GemmShape{1, 4096, 8192, 2048, {2048, 2048, 8192}};
  const testing::Fields fields{
      .grid = "[2, 66, 1]", .block = "[384, 1, 1]", .registers = 168, .shared_bytes = 213'000};
  const char* nvjet = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT";
  const auto shape = shape_of(fields, nvjet, &work);
  ASSERT_TRUE(shape);
  EXPECT_TRUE(shape->is_persistent);
  EXPECT_EQ(shape->items, 1024);
  EXPECT_EQ(shape->slots, 132);
  EXPECT_NEAR(shape->wave_efficiency(), 1024.0 / 1056.0, 1e-9);
  // As many blocks as tiles: an ordinary kernel.
  work.gemm = GemmShape{1, 256, 128 * 132, 2048, {2048, 2048, 16896}};
  EXPECT_FALSE(shape_of(fields, nvjet, &work)->is_persistent);
}

TEST(LaunchShapeTest, GivesNothingWithoutItsInputs) {
  const testing::Fields whole{
      .grid = "[1, 1, 1]", .block = "[32, 1, 1]", .registers = 8, .shared_bytes = 0};
  EXPECT_TRUE(shape_of(whole));
  EXPECT_FALSE(shape_of({.grid = "[1, 1, 1]", .block = "[32, 1, 1]"}));  // ROCm
  for (const char* grid : {"[0, 1, 1]", "[1, 1]", "7", "[-1, 1, 1]", "[1.5, 1, 1]",
                           "[9223372036854775807, 9223372036854775807, 2]"})
    EXPECT_FALSE(shape_of({.grid = grid, .block = "[32, 1, 1]", .registers = 8})) << grid;
  EXPECT_FALSE(shape_of(whole, "k", nullptr, GpuDevice{}));
}

}  // namespace
}  // namespace lanescope::analysis
