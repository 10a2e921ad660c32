// What hardware counters say about work on a GPU: the rates that kernels reached, as measured.
// docs/definitions/hardware.md#use-of-a-kernel.
//
// Problem: a sample covers a fixed time, often longer than a kernel. Idea: a sample counts for a
// group of equal pieces of work if nothing else ran in it and the group ran for at least half of
// it. Then the whole count belongs to the group, and its rate is the count over the time that the
// group ran in the sample. So the calls of a short kernel are pooled. Cost: O(n log n).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/analysis/kernel_groups.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// With fewer samples, no rate is given.
inline constexpr std::uint64_t kFewestHardwareSamples = 5;

// Samples of one device, as they are in the trace. A series that it lacks is empty.
struct HardwareSamples {
  std::int64_t interval_ns = 0;
  double dram_peak_bytes_per_second = 0;         // 0: unknown
  std::vector<std::int64_t> start_ns;            // by time
  std::vector<std::int64_t> length_ns;           // 0: unknown, the next sample is missing
  std::vector<double> sm_active, tensor_active;  // percent
  std::vector<double> dram_read, dram_write;     // bytes per nanosecond
  std::vector<double> sm_clock;                  // MHz
};
// Nothing: the trace has no samples of that device (lanescope_hardware in its metadata).
std::optional<HardwareSamples> find_hardware_samples(const Trace& trace, std::int64_t device);

// One piece of work; `group` has any number.
struct MeasuredPiece {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t group = 0;
};

struct HardwareUse {
  std::uint64_t sample_count = 0;  // that count for the group
  std::int64_t sampled_ns = 0;     // time that the group ran in them
  // Means over that time. Nothing: not measured, or too few samples.
  std::optional<double> sm_active_ratio, tensor_active_ratio;
  std::optional<double> dram_read_bytes_per_second, dram_write_bytes_per_second;
  std::optional<double> dram_peak_ratio;      // both together, of the peak
  std::optional<double> dram_bytes_per_call;  // the rate times the mean duration
  std::optional<double> sm_clock_mhz;         // mean in the samples, counted by the SMs
};

// One entry per group, 0 to group_count - 1. `pieces` by start.
std::vector<HardwareUse> measure_use(const HardwareSamples& samples,
                                     std::span<const MeasuredPiece> pieces,
                                     std::size_t group_count);

// The same for groups of kernels, in their order. Empty: the trace has no samples.
std::vector<HardwareUse> measure_kernel_groups(const Trace& trace, const LaunchLinks& links,
                                               const DeviceTimeline& timeline,
                                               std::span<const KernelGroup> groups);

}  // namespace lanescope::analysis
