#include "lanescope/report/hardware_use_text.h"

#include <fmt/format.h>

#include <optional>

#include "lanescope/report/text_format.h"

namespace lanescope::report {

using analysis::HardwareUse;

std::string hardware_use_header() {
  return fmt::format("{:>8}{:>8}{:>6}{:>11}{:>11}{:>9}{:>9}", "SMs", "tensor", "MHz", "read GB/s",
                     "write GB/s", "of peak", "samples");
}

std::string hardware_use_cells(const HardwareUse& use) {
  const auto percent = [](const std::optional<double>& ratio) {
    return ratio ? format_percent(*ratio, 1) : std::string("-");
  };
  const auto rate = [](const std::optional<double>& bytes_per_second) {
    return bytes_per_second ? fmt::format("{:.1f}", *bytes_per_second / 1e9) : std::string("-");
  };
  return fmt::format("{:>8}{:>8}{:>6}{:>11}{:>11}{:>9}{:>9}", percent(use.sm_active_ratio),
                     percent(use.tensor_active_ratio),
                     use.sm_clock_mhz ? fmt::format("{:.0f}", *use.sm_clock_mhz) : "-",
                     rate(use.dram_read_bytes_per_second), rate(use.dram_write_bytes_per_second),
                     percent(use.dram_peak_ratio), format_count(use.sample_count));
}

void write_hardware_use(JsonWriter& json, const HardwareUse& use) {
  json.begin_object("hardware")
      .integer("sample_count", use.sample_count)
      .integer("sampled_ns", use.sampled_ns);
  const auto real = [&](const char* name, const std::optional<double>& value) {
    if (value)
      json.real(name, *value);
    else
      json.null(name);
  };
  real("sm_active_ratio", use.sm_active_ratio);
  real("tensor_active_ratio", use.tensor_active_ratio);
  real("sm_clock_mhz", use.sm_clock_mhz);
  real("dram_read_bytes_per_second", use.dram_read_bytes_per_second);
  real("dram_write_bytes_per_second", use.dram_write_bytes_per_second);
  real("dram_peak_ratio", use.dram_peak_ratio);
  real("dram_bytes_per_call", use.dram_bytes_per_call);
  json.end_object();
}

}  // namespace lanescope::report
