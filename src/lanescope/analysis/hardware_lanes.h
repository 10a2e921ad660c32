// All series of hardware counters that a trace has of one GPU, by name, and the peaks that the
// recorder knew. docs/definitions/hardware.md.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/json_value.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

struct HardwareSeries {
  std::string unit;                    // "%", "GB/s", "MHz", "W", "C", "0/1"
  std::vector<std::int64_t> start_ns;  // by time
  std::vector<double> value;
};

// 0: the recording does not say it.
struct HardwareLanes {
  std::int64_t interval_ns = 0;       // of the GPU's own counters
  std::int64_t slow_interval_ns = 0;  // of clocks, power and temperature
  double pcie_peak_bytes_per_second = 0, nvlink_peak_bytes_per_second = 0;  // in one direction
  double power_limit_watts = 0, highest_sm_clock_mhz = 0;
  std::map<std::string, HardwareSeries, std::less<>> series;

  // Null: the trace has no such series.
  const HardwareSeries* find(std::string_view name) const;
};

// What the recorder wrote of that device: its object in lanescope_hardware of the metadata.
std::optional<JsonValue> hardware_description(const Trace& trace, std::int64_t device);

// Nothing: the trace has no samples of that device (lanescope_hardware in its metadata). O(counters).
std::optional<HardwareLanes> find_hardware_lanes(const Trace& trace, std::int64_t device);

}  // namespace lanescope::analysis
