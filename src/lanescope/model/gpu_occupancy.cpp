// Problem: warp slots, block slots, registers and shared memory limit how many blocks of a kernel
// an SM holds at once, and each is allocated in steps. Idea: round up what one block takes to those
// steps, divide four times, take the least. The steps are those of the table "Technical
// Specifications per Compute Capability" of the CUDA C++ Programming Guide and of the occupancy
// calculator of Nsight Compute. Example, H200, 384 threads, 168 registers, 213188 bytes: 64 / 12 =
// 5 by warps, 32 by slots, 12 / 12 = 1 by registers, 233472 / 214272 = 1 by shared memory.
#include "lanescope/model/gpu_occupancy.h"

#include <algorithm>
#include <limits>

namespace lanescope {
namespace {

// Larger ones are damage; products of two of them still fit 64 bits.
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kRegisterStep = 256;  // of a warp; every compute capability since 3.0

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

bool is_sane(std::int64_t value) { return value >= 0 && value <= kMost; }
bool is_limit(const GpuDevice::Number& value) { return value && *value > 0 && *value <= kMost; }

// Fixed by the compute capability, and missing in old traces.
struct Rules {
  std::int64_t block_slots = 0;         // resident blocks an SM
  std::int64_t partitions = 4;          // of the register file; a warp lives in one of them
  std::int64_t shared_step = 128;       // bytes
  std::int64_t reserved_shared = 1024;  // bytes the driver keeps of each block
};

std::optional<Rules> rules_of(std::int64_t major, std::int64_t minor) {
  Rules rules;
  switch (major) {
    case 5:
    case 6:
    case 7:
      rules.block_slots = major == 7 && minor == 5 ? 16 : 32;
      rules.partitions = major == 6 && minor == 0 ? 2 : 4;
      rules.shared_step = 256;
      rules.reserved_shared = 0;
      return rules;
    case 8:
      rules.block_slots = minor == 0 ? 32 : minor == 9 ? 24 : 16;
      return rules;
    case 9:
      rules.block_slots = 32;
      return rules;
    case 10:
      rules.block_slots = minor == 1 ? 24 : 32;
      return rules;
    case 11:
    case 12:
      rules.block_slots = 24;
      return rules;
    default:
      return std::nullopt;
  }
}

std::string limit_text(const GpuOccupancy& occupancy) {
  if (occupancy.launched_blocks < static_cast<double>(occupancy.resident_blocks)) return "grid";
  std::string text;
  const auto add = [&](std::optional<std::int64_t> blocks, const char* name) {
    if (blocks == occupancy.resident_blocks) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(occupancy.blocks_by_warps, "warps");
  add(occupancy.blocks_by_slots, "blocks");
  add(occupancy.blocks_by_registers, "registers");
  add(occupancy.blocks_by_shared, "shared memory");
  return text;
}

}  // namespace

std::optional<GpuOccupancy> compute_gpu_occupancy(const GpuDevice& device,
                                                  const KernelResources& kernel) {
  if (!device.compute_major || device.compute_minor.value_or(-1) < 0 ||
      !is_limit(device.max_threads_per_sm) || !is_limit(device.warp_size) ||
      !is_limit(device.sm_count) || !is_limit(device.registers_per_sm) ||
      !is_limit(device.shared_bytes_per_sm))
    return std::nullopt;
  const auto rules = rules_of(*device.compute_major, *device.compute_minor);
  if (!rules || kernel.grid_blocks <= 0 || kernel.block_threads <= 0 ||
      !is_sane(kernel.block_threads) || !is_sane(kernel.registers_per_thread) ||
      !is_sane(kernel.shared_bytes))
    return std::nullopt;
  const std::int64_t warp = *device.warp_size, max_warps = *device.max_threads_per_sm / warp;
  const std::int64_t block_warps = (kernel.block_threads + warp - 1) / warp;

  GpuOccupancy out;
  out.blocks_by_warps = max_warps / block_warps;
  out.blocks_by_slots =
      is_limit(device.max_blocks_per_sm) ? *device.max_blocks_per_sm : rules->block_slots;
  out.resident_blocks = std::min(out.blocks_by_warps, out.blocks_by_slots);
  if (kernel.registers_per_thread > 0) {
    const std::int64_t warp_registers = round_up(kernel.registers_per_thread * warp, kRegisterStep);
    const std::int64_t warps = *device.registers_per_sm / rules->partitions / warp_registers;
    out.blocks_by_registers = warps * rules->partitions / block_warps;
    out.resident_blocks = std::min(out.resident_blocks, *out.blocks_by_registers);
  }
  const std::int64_t reserved =
      device.reserved_shared_bytes_per_block && is_sane(*device.reserved_shared_bytes_per_block)
          ? *device.reserved_shared_bytes_per_block
          : rules->reserved_shared;
  const std::int64_t block_shared = round_up(kernel.shared_bytes + reserved, rules->shared_step);
  if (block_shared > 0) {
    const std::int64_t there =
        std::min(kernel.shared_carveout_bytes.value_or(kMost), *device.shared_bytes_per_sm);
    out.blocks_by_shared = there / block_shared;
    out.resident_blocks = std::min(out.resident_blocks, *out.blocks_by_shared);
  }
  if (out.resident_blocks <= 0) return std::nullopt;

  out.resident_warps = out.resident_blocks * block_warps;
  out.theoretical_ratio = static_cast<double>(out.resident_warps) / static_cast<double>(max_warps);
  out.launched_blocks =
      static_cast<double>(kernel.grid_blocks) / static_cast<double>(*device.sm_count);
  out.launched_warps =
      out.launched_blocks * static_cast<double>(kernel.block_threads) / static_cast<double>(warp);
  out.achieved_ratio = std::min(out.launched_blocks, static_cast<double>(out.resident_blocks)) *
                       static_cast<double>(kernel.block_threads) /
                       static_cast<double>(*device.max_threads_per_sm);
  out.limit = limit_text(out);
  return out;
}

}  // namespace lanescope
