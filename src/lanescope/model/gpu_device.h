// A GPU as the trace describes it: one entry of the top-level "deviceProperties".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope {

// Absent: the trace does not say. Numbers come from the driver: bytes, kHz, bits, counts.
struct GpuDevice {
  using Number = std::optional<std::int64_t>;
  std::string name;
  Number id, memory_bytes, compute_major, compute_minor;
  Number max_threads_per_block, max_threads_per_sm, max_blocks_per_sm, warp_size, sm_count;
  Number registers_per_block, registers_per_sm;
  // Shared memory: of a block; of a block that opts in to more than 48 KB; of an SM; reserved by
  // the driver in each block.
  Number shared_bytes_per_block, shared_bytes_per_block_optin, shared_bytes_per_sm,
      reserved_shared_bytes_per_block;
  Number clock_khz, memory_clock_khz, memory_bus_bits, l2_bytes, memory_bandwidth_bytes_per_s;
  std::optional<bool> is_mig;  // a slice of a GPU
  std::string uuid, pci_bus_id;
};

// From the JSON list that torch.profiler and lanescope write (Kineto's keys; lanescope's own
// in a nested "lanescope" object) and from older spellings. Values of the wrong type are left
// out. Any thread.
std::vector<GpuDevice> parse_gpu_devices(std::string_view json);

}  // namespace lanescope
