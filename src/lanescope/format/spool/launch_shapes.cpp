#include "lanescope/format/spool/launch_shapes.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "lanescope/model/gpu_occupancy.h"

namespace lanescope::format {
namespace {

// Kineto computes these in floats and prints six decimals.
double six_decimals(float value) { return std::round(static_cast<double>(value) * 1e6) / 1e6; }

// The largest number of 63 bits when it is more: then the record is damaged.
std::int64_t product(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t out = 0;
  if (__builtin_mul_overflow(std::uint64_t{x} * y, std::uint64_t{z}, &out) ||
      out > static_cast<std::uint64_t>(kMost))
    return kMost;
  return static_cast<std::int64_t>(out);
}

}  // namespace

LaunchShapes::LaunchShapes(TraceBuilder& builder, std::span<const GpuDevice> devices)
    : builder_(builder) {
  for (const GpuDevice& device : devices)
    if (device.id) device_by_id_.emplace(*device.id, &device);
}

const LaunchShape& LaunchShapes::of(const spool::KernelRecord& kernel,
                                    const spool::KernelMoreRecord& more) {
  const Key key{kernel.device,
                kernel.registers_per_thread,
                kernel.static_shared_bytes,
                more.dynamic_shared_bytes,
                more.grid_x,
                more.grid_y,
                more.grid_z,
                more.block_x,
                more.block_y,
                kernel.block_z,
                more.cluster_x,
                more.cluster_y,
                more.cluster_z};
  const auto [known, is_new] = shapes_.try_emplace(key);
  if (is_new) known->second = compute(kernel, more);
  return known->second;
}

LaunchShape LaunchShapes::compute(const spool::KernelRecord& kernel,
                                  const spool::KernelMoreRecord& more) {
  LaunchShape shape;
  const auto list = [this](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    return builder_.intern(fmt::format("[{}, {}, {}]", x, y, z));
  };
  shape.shared_bytes = std::int64_t{kernel.static_shared_bytes} + more.dynamic_shared_bytes;
  shape.grid = list(more.grid_x, more.grid_y, more.grid_z);
  shape.block = list(more.block_x, more.block_y, kernel.block_z);
  if (more.cluster_x != 0) shape.cluster = list(more.cluster_x, more.cluster_y, more.cluster_z);
  const auto device = device_by_id_.find(kernel.device);
  if (device == device_by_id_.end()) return shape;
  const auto occupancy = compute_gpu_occupancy(
      *device->second, {.grid_blocks = product(more.grid_x, more.grid_y, more.grid_z),
                        .block_threads = product(more.block_x, more.block_y, kernel.block_z),
                        .registers_per_thread = kernel.registers_per_thread,
                        .shared_bytes = shape.shared_bytes});
  if (!occupancy) return shape;
  shape.occupancy = true;
  shape.blocks_per_sm = six_decimals(static_cast<float>(occupancy->launched_blocks));
  shape.warps_per_sm = six_decimals(static_cast<float>(occupancy->launched_warps));
  shape.achieved_percent = static_cast<std::int64_t>(0.5 + occupancy->achieved_ratio * 100.0);
  shape.limit = builder_.intern(occupancy->limit);
  return shape;
}

}  // namespace lanescope::format
