// How a kernel's blocks fill the GPU: in waves, the last of which may be nearly empty.
#pragma once
#include <cstdint>
#include <optional>

#include "lanescope/analysis/operator_work.h"
#include "lanescope/model/gpu_device.h"
#include "lanescope/model/gpu_occupancy.h"
#include "lanescope/model/trace.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::analysis {

// Defined in docs/definitions/kernels.md#waves.
struct LaunchShape {
  std::int64_t blocks = 0, block_threads = 0, sm_count = 0;
  std::optional<GpuOccupancy> occupancy;
  // The blocks stay and compute one tile of the result after the other.
  bool is_persistent = false;
  std::int64_t items = 0;  // blocks, or tiles of a persistent kernel
  std::int64_t slots = 0;  // items that run at the same time; 0: unknown
  double waves() const {
    return slots == 0 ? 0 : static_cast<double>(items) / static_cast<double>(slots);
  }
  // Share of the places that had work, including the empty places of the last wave: by slots, or by
  // multiprocessors if several blocks share one, whichever wastes less. 0: unknown.
  double wave_efficiency() const;
};

// Nothing: grid, block or registers are missing (CUPTI writes all three; in ROCm it is unclear
// whether a grid counts threads or blocks), or the device's number of multiprocessors. `work`: the
// operator's work, for the tiles of a GEMM; may be null. O(1); any thread.
std::optional<LaunchShape> compute_launch_shape(const Trace& trace, SliceId kernel,
                                                const GpuDevice& device,
                                                const names::KernelName& name,
                                                const OperatorWork* work);

}  // namespace lanescope::analysis
