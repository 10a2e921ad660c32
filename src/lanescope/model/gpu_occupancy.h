// How much of a multiprocessor (SM) a kernel can fill, and what keeps it from filling more.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "lanescope/model/gpu_device.h"

namespace lanescope {

// What one launch asks for. Bytes are per block, static and dynamic added up.
struct KernelResources {
  std::int64_t grid_blocks = 0, block_threads = 0;
  std::int64_t registers_per_thread = 0, shared_bytes = 0;
  // Shared memory that the SM was set to have, where that is known; else as much as it can have.
  std::optional<std::int64_t> shared_carveout_bytes = {};
};

// Defined in docs/definitions/kernels.md#occupancy. Warps and blocks are per SM.
struct GpuOccupancy {
  // Blocks that fit at once by each limit alone; absent: it does not limit this kernel.
  std::int64_t blocks_by_warps = 0, blocks_by_slots = 0;
  std::optional<std::int64_t> blocks_by_registers, blocks_by_shared;
  std::int64_t resident_blocks = 0;  // the least of them
  std::int64_t resident_warps = 0;   // of those blocks
  double theoretical_ratio = 0;      // resident threads' warps / most warps
  double launched_blocks = 0;        // blocks of the grid / SMs
  double launched_warps = 0;         // their warps
  double achieved_ratio = 0;         // as Kineto estimates it: with the fewer of both blocks
  std::string limit;  // "warps", "blocks", "registers", "shared memory"; "grid": too few blocks are
                      // launched to fill what fits; several in that order, ", " between
};

// Nothing: a limit is unknown, the compute capability is outside of 5.0 to 12.x, or the kernel
// would not fit at all (but it ran, so the numbers are wrong). Ignores clusters. O(1); any thread.
std::optional<GpuOccupancy> compute_gpu_occupancy(const GpuDevice& device,
                                                  const KernelResources& kernel);

}  // namespace lanescope
