// The peak rates of GPUs from their makers' data sheets, to compare measured rates with.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lanescope/model/gpu_device.h"

namespace lanescope {

// Operations a second (a multiply-add is two), dense: without the factor 2 of structured sparsity.
// fp32 and fp64 are rates of the ordinary units, the others of the matrix units; fp16, bf16 and fp8
// accumulate in fp32 where the data sheet makes a difference. Absent: the GPU lacks it, or its
// maker does not say.
struct GpuPeakRates {
  std::optional<double> fp64, fp64_matrix, fp32, tf32, bf16, fp16, fp8, int8;
};

struct GpuSpec {
  std::string_view name;     // "NVIDIA H200"
  std::string_view pattern;  // what the driver's name contains, lower case
  std::int64_t compute_major, compute_minor;
  double memory_bandwidth_bytes_per_s;
  std::optional<std::int64_t> l2_bytes;
  GpuPeakRates peak;
  std::string_view source;  // the maker's document
  // Of its 16 lanes to the host. Absent: it has another link, or the maker's document does not say.
  std::optional<int> pcie_generation = {};
};

// The entry for a device: same compute capability, and the longest pattern that is in the device's
// name as whole words. nullptr: an unknown device, or a MIG slice, which has less than the whole
// GPU. Valid for ever; any thread.
const GpuSpec* find_gpu_spec(const GpuDevice& device);
std::span<const GpuSpec> gpu_specs();
// Bytes a second that 16 lanes of that generation (3 to 5) move in one direction. docs/definitions/hardware.md.
double pcie_bytes_per_s(int generation);

}  // namespace lanescope
