// Values of one GPU from NVML: clocks, power, temperature, and the peak rates of its memory and links.
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/record_cupti/cupti_library.h"
#include "lanescope/record_cupti/pm_library.h"

namespace lanescope::record_cupti {

// One thread.
class NvmlSeries {
 public:
  // `nvml` may be null.
  NvmlSeries(const NvmlLibrary* nvml, const CudaDriver& driver, CUdevice device);
  bool is_there() const { return nvml_ != nullptr; }

  static constexpr std::uint32_t kCount = 6;
  // In the order of series_json(). Values that NVML does not give are 0.
  void read(float (&values)[kCount]) const;
  static const char* series_json();

  // JSON members for the device's description, each ", \"name\": number". Leaves out what NVML does not
  // give. docs/definitions/hardware.md.
  std::string peaks_json() const;

 private:
  std::uint64_t dram_peak() const;    // bytes per second: two transfers a clock; 0: unknown
  std::uint64_t pcie_peak() const;    // in one direction
  std::uint64_t nvlink_peak() const;  // in one direction

  const NvmlLibrary* nvml_ = nullptr;
  NvmlLibrary::Device device_ = nullptr;
};

}  // namespace lanescope::record_cupti
