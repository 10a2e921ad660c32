#include "lanescope/record_cupti/nvml_series.h"

#include <iterator>

#include "lanescope/record_cupti/gpu_devices.h"

namespace lanescope::record_cupti {
namespace {

constexpr int kSmClock = 1, kMemoryClock = 2;

// Bytes per second of one lane in one direction, by generation from 1 on: the bit rate less its
// encoding (8b/10b, from 3 on 128b/130b, 6 in flits of 242 of 256 bytes).
constexpr std::uint64_t kPcieLane[] = {250'000'000,   500'000'000,   984'615'384,
                                       1'969'230'769, 3'938'461'538, 7'562'500'000};

void add(std::string* json, const char* name, std::uint64_t value) {
  if (value != 0) *json += std::string(", \"") + name + "\": " + std::to_string(value);
}

}  // namespace

NvmlSeries::NvmlSeries(const NvmlLibrary* nvml, const CudaDriver& driver, CUdevice device) {
  CUuuid uuid{};
  if (!nvml || !driver.cuDeviceGetUuid || driver.cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS)
    return;
  const std::string name = gpu_uuid_text(uuid);
  if (nvml->nvmlDeviceGetHandleByUUID(name.c_str(), &device_) == 0) nvml_ = nvml;
}

void NvmlSeries::read(float (&values)[kCount]) const {
  unsigned sm = 0, memory = 0, milliwatts = 0, degrees = 0;
  unsigned long long reasons = 0;
  nvml_->nvmlDeviceGetClockInfo(device_, kSmClock, &sm);
  nvml_->nvmlDeviceGetClockInfo(device_, kMemoryClock, &memory);
  nvml_->nvmlDeviceGetPowerUsage(device_, &milliwatts);
  nvml_->nvmlDeviceGetTemperature(device_, 0, &degrees);
  if (nvml_->nvmlDeviceGetClockReasons) nvml_->nvmlDeviceGetClockReasons(device_, &reasons);
  values[0] = static_cast<float>(sm);
  values[1] = static_cast<float>(memory);
  values[2] = static_cast<float>(milliwatts) / 1000;
  values[3] = static_cast<float>(degrees);
  values[4] = (reasons & kReasonPower) != 0 ? 1 : 0;
  values[5] = (reasons & kReasonHeat) != 0 ? 1 : 0;
}

const char* NvmlSeries::series_json() {
  return R"([{"name": "SM clock", "unit": "MHz"}, {"name": "memory clock", "unit": "MHz"}, )"
         R"({"name": "power", "unit": "W"}, {"name": "temperature", "unit": "C"}, )"
         R"({"name": "slowed by power limit", "unit": "0/1"}, )"
         R"({"name": "slowed by heat", "unit": "0/1"}])";
}

std::string NvmlSeries::peaks_json() const {
  if (!nvml_) return "";
  std::string json;
  add(&json, "dram_peak_bytes_per_second", dram_peak());
  add(&json, "pcie_peak_bytes_per_second", pcie_peak());
  add(&json, "nvlink_peak_bytes_per_second", nvlink_peak());
  unsigned clock = 0, milliwatts = 0;
  if (nvml_->nvmlDeviceGetMaxClockInfo &&
      nvml_->nvmlDeviceGetMaxClockInfo(device_, kSmClock, &clock) == 0)
    add(&json, "highest_sm_clock_mhz", clock);
  if (nvml_->nvmlDeviceGetEnforcedPowerLimit &&
      nvml_->nvmlDeviceGetEnforcedPowerLimit(device_, &milliwatts) == 0 && milliwatts != 0)
    json += ", \"power_limit_watts\": " + std::to_string(milliwatts / 1000.0);
  return json;
}

std::uint64_t NvmlSeries::dram_peak() const {
  unsigned clock = 0, bits = 0;
  if (!nvml_->nvmlDeviceGetMaxClockInfo || !nvml_->nvmlDeviceGetMemoryBusWidth ||
      nvml_->nvmlDeviceGetMaxClockInfo(device_, kMemoryClock, &clock) != 0 ||
      nvml_->nvmlDeviceGetMemoryBusWidth(device_, &bits) != 0)
    return 0;
  return std::uint64_t{clock} * 1'000'000 * 2 * (bits / 8);
}

std::uint64_t NvmlSeries::pcie_peak() const {
  unsigned generation = 0, lanes = 0;
  if (!nvml_->nvmlDeviceGetMaxPcieLinkGeneration || !nvml_->nvmlDeviceGetMaxPcieLinkWidth ||
      nvml_->nvmlDeviceGetMaxPcieLinkGeneration(device_, &generation) != 0 ||
      nvml_->nvmlDeviceGetMaxPcieLinkWidth(device_, &lanes) != 0 || generation == 0 ||
      generation > std::size(kPcieLane) || lanes > 32)
    return 0;
  return kPcieLane[generation - 1] * lanes;
}

std::uint64_t NvmlSeries::nvlink_peak() const {
  if (!nvml_->nvmlDeviceGetNvLinkState || !nvml_->nvmlDeviceGetFieldValues) return 0;
  std::uint64_t links = 0;
  for (unsigned link = 0; link < kMostNvLinks; ++link) {
    int is_active = 0;
    if (nvml_->nvmlDeviceGetNvLinkState(device_, link, &is_active) == 0 && is_active == 1) ++links;
  }
  if (links == 0) return 0;
  NvmlFieldValue speed{.field = kFieldNvLinkSpeed};  // in units of 10^6 bytes per second
  if (nvml_->nvmlDeviceGetFieldValues(device_, 1, &speed) != 0 || speed.result != 0) return 0;
  return links * speed.value.number * 1'000'000;
}

}  // namespace lanescope::record_cupti
