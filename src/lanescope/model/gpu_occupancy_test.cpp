#include "lanescope/model/gpu_occupancy.h"

#include <gtest/gtest.h>

namespace lanescope {
namespace {

GpuDevice device(std::int64_t major, std::int64_t minor, std::int64_t threads, std::int64_t sms,
                 std::int64_t shared) {
  GpuDevice out;
  out.compute_major = major;
  out.compute_minor = minor;
  out.max_threads_per_sm = threads;
  out.warp_size = 32;
  out.sm_count = sms;
  out.registers_per_sm = 65536;
  out.shared_bytes_per_sm = shared;
  return out;
}
const GpuDevice kH200 = device(9, 0, 2048, 132, 233472);
const GpuDevice kA100 = device(8, 0, 2048, 108, 167936);
const GpuDevice kV100 = device(7, 0, 2048, 80, 98304);
const GpuDevice kRtx4090 = device(8, 9, 1536, 128, 102400);

KernelResources kernel(std::int64_t grid, std::int64_t block, std::int64_t registers,
                       std::int64_t shared) {
  return {.grid_blocks = grid,
          .block_threads = block,
          .registers_per_thread = registers,
          .shared_bytes = shared};
}

// 384 threads are 12 warps: 64 / 12 = 5 blocks by warps. 168 registers x 32 = 5376 a warp, which is
// 21 x 256; a quarter of the register file, 16384, holds 3 such warps, the SM 12: one block.
// 213188 + 1024 bytes, in steps of 128: 214272; 233472 / 214272 = 1.
// 132 blocks on 132 SMs: 1 each, 12 warps of 64: 18.75 %. (Kineto 2.11 prints 0 for this kernel.)
TEST(GpuOccupancyTest, H200MatrixKernelOfOneBlockAnSm) {
  const auto out = compute_gpu_occupancy(kH200, kernel(2 * 66, 384, 168, 213188));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->blocks_by_warps, 5);
  EXPECT_EQ(out->blocks_by_slots, 32);
  EXPECT_EQ(out->blocks_by_registers, 1);
  EXPECT_EQ(out->blocks_by_shared, 1);
  EXPECT_EQ(out->resident_blocks, 1);
  EXPECT_EQ(out->resident_warps, 12);
  EXPECT_DOUBLE_EQ(out->theoretical_ratio, 12.0 / 64);
  EXPECT_DOUBLE_EQ(out->launched_blocks, 1);
  EXPECT_DOUBLE_EQ(out->launched_warps, 12);
  EXPECT_DOUBLE_EQ(out->achieved_ratio, 0.1875);
  EXPECT_EQ(out->limit, "registers, shared memory");
}

// 255 registers: 8160 a warp, in steps of 256 8192; 16384 / 8192 = 2 warps a quarter, 8 an SM, two
// blocks of 4 warps. 1024 blocks on 132 SMs are 7.76 each, so two of them run: 256 of 2048 threads.
TEST(GpuOccupancyTest, H200RegistersLimitAConvolution) {
  const auto out = compute_gpu_occupancy(kH200, kernel(1024, 128, 255, 33280));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->blocks_by_registers, 2);
  EXPECT_EQ(out->blocks_by_shared, 6);  // 33280 + 1024 = 34304 = 268 x 128; 233472 / 34304 = 6.8
  EXPECT_DOUBLE_EQ(out->launched_blocks, 1024.0 / 132);
  EXPECT_DOUBLE_EQ(out->achieved_ratio, 0.125);
  EXPECT_EQ(out->limit, "registers");
}

// 96 registers are 3072 a warp: 5 warps a quarter, 20 an SM; the whole file would hold 21.
TEST(GpuOccupancyTest, AWarpsRegistersLieInOneQuarter) {
  EXPECT_EQ(compute_gpu_occupancy(kH200, kernel(10'000, 32, 96, 0))->blocks_by_registers, 20);
  GpuDevice p100 = device(6, 0, 2048, 56, 65536);  // two halves: 32768 / 3072 = 10, twice
  EXPECT_EQ(compute_gpu_occupancy(p100, kernel(10'000, 32, 96, 0))->blocks_by_registers, 20);
  EXPECT_EQ(compute_gpu_occupancy(p100, kernel(10'000, 32, 168, 0))->blocks_by_registers, 12);
}

// 1024 threads: 2 blocks of 32 warps fill all 64, with 32 registers exactly: 65536 / 1024 = 64.
TEST(GpuOccupancyTest, A100FullOfWarps) {
  const auto out = compute_gpu_occupancy(kA100, kernel(216, 1024, 32, 0));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->blocks_by_warps, 2);
  EXPECT_EQ(out->blocks_by_registers, 2);
  EXPECT_EQ(out->blocks_by_shared, 164);  // 1024 bytes are the driver's: 167936 / 1024
  EXPECT_DOUBLE_EQ(out->theoretical_ratio, 1);
  EXPECT_DOUBLE_EQ(out->achieved_ratio, 1);
  EXPECT_EQ(out->limit, "warps, registers");
}

// A block of one warp: 32 slots are gone while half of the warps are free.
TEST(GpuOccupancyTest, A100BlocksOfOneWarpRunOutOfSlots) {
  const auto out = compute_gpu_occupancy(kA100, kernel(100'000, 32, 16, 0));
  EXPECT_EQ(out->resident_blocks, 32);
  EXPECT_DOUBLE_EQ(out->theoretical_ratio, 0.5);
  EXPECT_EQ(out->limit, "blocks");
}

// Before 8.0 the driver keeps nothing and steps are 256: 40000 -> 40192; 98304 / 40192 = 2.
TEST(GpuOccupancyTest, V100SharedMemoryHasNoReserve) {
  const auto out = compute_gpu_occupancy(kV100, kernel(1000, 256, 32, 40000));
  EXPECT_EQ(out->blocks_by_shared, 2);
  EXPECT_EQ(out->resident_warps, 16);
  EXPECT_DOUBLE_EQ(out->achieved_ratio, 0.25);
  EXPECT_EQ(out->limit, "shared memory");
  EXPECT_FALSE(compute_gpu_occupancy(kV100, kernel(1000, 256, 32, 0))->blocks_by_shared);
}

// 1536 threads are 48 warps, 24 slots. 256 threads, 40 registers: 1280 a warp, 12 a quarter, 48: 6
// blocks of 8 warps. 200 bytes: 1280 with the reserve, 80 blocks.
TEST(GpuOccupancyTest, Rtx4090HasFewerWarpsAndSlots) {
  const auto out = compute_gpu_occupancy(kRtx4090, kernel(128 * 3, 256, 40, 200));
  EXPECT_EQ(out->blocks_by_warps, 6);
  EXPECT_EQ(out->blocks_by_slots, 24);
  EXPECT_EQ(out->blocks_by_registers, 6);
  EXPECT_EQ(out->blocks_by_shared, 80);
  EXPECT_DOUBLE_EQ(out->theoretical_ratio, 1);
  EXPECT_DOUBLE_EQ(out->launched_blocks, 3);
  EXPECT_DOUBLE_EQ(out->achieved_ratio, 0.5);  // 3 x 256 of 1536
  EXPECT_EQ(out->limit, "grid");
}

TEST(GpuOccupancyTest, WhatTheDriverReportsWinsOverTheTable) {
  GpuDevice reported = kH200;
  reported.max_blocks_per_sm = 8;
  reported.reserved_shared_bytes_per_block = 2048;
  EXPECT_EQ(compute_gpu_occupancy(reported, kernel(9999, 32, 16, 0))->resident_blocks, 8);
  EXPECT_EQ(compute_gpu_occupancy(reported, kernel(9999, 32, 16, 0))->blocks_by_shared, 114);
  KernelResources carved = kernel(9999, 128, 16, 0);
  carved.shared_carveout_bytes = 8192;  // 8192 / 1024
  EXPECT_EQ(compute_gpu_occupancy(kH200, carved)->resident_blocks, 8);
}

TEST(GpuOccupancyTest, UnknownLimitsGiveNothing) {
  const KernelResources usual = kernel(10, 128, 32, 0);
  ASSERT_TRUE(compute_gpu_occupancy(kH200, usual));
  EXPECT_FALSE(compute_gpu_occupancy({}, usual));
  for (const auto member :
       {&GpuDevice::compute_major, &GpuDevice::compute_minor, &GpuDevice::max_threads_per_sm,
        &GpuDevice::warp_size, &GpuDevice::sm_count, &GpuDevice::registers_per_sm,
        &GpuDevice::shared_bytes_per_sm}) {
    GpuDevice lacking = kH200;
    lacking.*member = std::nullopt;
    EXPECT_FALSE(compute_gpu_occupancy(lacking, usual));
    lacking.*member = -1;
    EXPECT_FALSE(compute_gpu_occupancy(lacking, usual));
  }
  GpuDevice newer = kH200;
  newer.compute_major = 13;
  EXPECT_FALSE(compute_gpu_occupancy(newer, usual));
}

TEST(GpuOccupancyTest, WhatCannotHaveRunGivesNothing) {
  EXPECT_FALSE(compute_gpu_occupancy(kH200, kernel(10, 128, 32, 240'000)));
  EXPECT_FALSE(compute_gpu_occupancy(kH200, kernel(10, 4096, 32, 0)));
  EXPECT_FALSE(compute_gpu_occupancy(kH200, kernel(0, 128, 32, 0)));
  EXPECT_FALSE(compute_gpu_occupancy(kH200, kernel(10, 0, 32, 0)));
  EXPECT_FALSE(compute_gpu_occupancy(kH200, kernel(10, 128, 65535, 0)));
  EXPECT_FALSE(compute_gpu_occupancy(kH200, kernel(10, 128, 32, std::int64_t{1} << 40)));
  EXPECT_FALSE(compute_gpu_occupancy(kH200, kernel(10, -5, -3, -1)));
}

}  // namespace
}  // namespace lanescope
