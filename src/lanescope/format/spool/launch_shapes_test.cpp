#include "lanescope/format/spool/launch_shapes.h"

#include <gtest/gtest.h>

namespace lanescope::format {
namespace {

GpuDevice h200() {
  GpuDevice device;
  device.id = 0;
  device.compute_major = 9;
  device.compute_minor = 0;
  device.max_threads_per_sm = 2048;
  device.warp_size = 32;
  device.sm_count = 132;
  device.registers_per_sm = 65536;
  device.shared_bytes_per_sm = 233472;
  return device;
}

// 264 blocks of 1,024 threads on 132 SMs: 2 blocks and 64 warps each, which fills an SM.
TEST(LaunchShapesTest, OccupancyIsThatOfTheDevice) {
  TraceBuilder builder;
  const GpuDevice device = h200();
  LaunchShapes shapes(builder, {&device, 1});
  spool::KernelRecord kernel{};
  kernel.block_z = 1;
  kernel.registers_per_thread = 32;
  spool::KernelMoreRecord more{};
  more.grid_x = 264, more.grid_y = 1, more.grid_z = 1;
  more.block_x = 1024, more.block_y = 1;
  const LaunchShape& shape = shapes.of(kernel, more);
  EXPECT_TRUE(shape.occupancy);
  EXPECT_EQ(shape.blocks_per_sm, 2);
  EXPECT_EQ(shape.warps_per_sm, 64);
  EXPECT_EQ(shape.achieved_percent, 100);
  EXPECT_EQ(builder.text(shape.grid), "[264, 1, 1]");
}

// Damage: 4294934528 * 4294967295 does not fit 63 bits.
TEST(LaunchShapesTest, AGridOfMoreBlocksThanNumbersHoldIsTheLargestNumber) {
  TraceBuilder builder;
  const GpuDevice device = h200();
  LaunchShapes shapes(builder, {&device, 1});
  spool::KernelRecord kernel{};
  kernel.block_z = 1;
  spool::KernelMoreRecord more{};
  more.grid_x = 4294934528, more.grid_y = 4294967295, more.grid_z = 1;
  more.block_x = 32, more.block_y = 1;
  const LaunchShape& shape = shapes.of(kernel, more);
  EXPECT_TRUE(shape.occupancy);
  EXPECT_GT(shape.blocks_per_sm, 6e16);  // 2^63 / 132
  EXPECT_EQ(builder.text(shape.grid), "[4294934528, 4294967295, 1]");
}

}  // namespace
}  // namespace lanescope::format
