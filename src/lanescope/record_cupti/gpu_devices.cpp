#include "lanescope/record_cupti/gpu_devices.h"

#include <cstdio>
#include <cstring>

namespace lanescope::record_cupti {
namespace {

struct Property {
  const char* name;
  CUdevice_attribute attribute;
};
// torch.profiler's names, in its order.
constexpr Property kProperties[] = {
    {"computeMajor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {"computeMinor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {"maxThreadsPerBlock", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {"maxThreadsPerMultiprocessor", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {"regsPerBlock", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {"warpSize", CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {"sharedMemPerBlock", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {"numSms", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {"regsPerMultiprocessor", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {"sharedMemPerBlockOptin", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {"sharedMemPerMultiprocessor", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR}};
constexpr Property kLanescopeProperties[] = {
    {"maxBlocksPerMultiprocessor", CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {"reservedSharedMemPerBlock", CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK},
    {"clockRateKHz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
    {"memoryClockRateKHz", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
    {"memoryBusBits", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {"l2CacheBytes", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {"pciDomain", CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID},
    {"pciBus", CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
    {"pciDevice", CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
    {"asyncEngineCount", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT}};

template <std::size_t kCount>
void add_attributes(const CudaDriver& driver, CUdevice device, const Property (&list)[kCount],
                    std::string* out) {
  for (const Property& property : list) {
    int value = 0;
    if (driver.cuDeviceGetAttribute(&value, property.attribute, device) != CUDA_SUCCESS) continue;
    if (out->back() != '{') *out += ", ";
    *out += '"' + std::string(property.name) + "\": " + std::to_string(value);
  }
}

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex;
  }
  return text;
}

std::string device_json(const CudaDriver& driver, int number, CUdevice device) {
  std::string out = "{\"id\": " + std::to_string(number);
  char name[256] = "";
  if (driver.cuDeviceGetName(name, sizeof name - 1, device) == CUDA_SUCCESS)
    out += ", \"name\": " + json_text(name);
  std::size_t bytes = 0;
  if (driver.cuDeviceTotalMem(&bytes, device) == CUDA_SUCCESS)
    out += ", \"totalGlobalMem\": " + std::to_string(bytes);
  add_attributes(driver, device, kProperties, &out);
  out += ", \"lanescope\": {";
  add_attributes(driver, device, kLanescopeProperties, &out);
  int clock = 0, bits = 0;
  // Double data rate: two transfers a clock.
  if (driver.cuDeviceGetAttribute(&clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) ==
          CUDA_SUCCESS &&
      driver.cuDeviceGetAttribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device) ==
          CUDA_SUCCESS &&
      clock > 0 && bits > 0)
    out += ", \"memoryBandwidthBytesPerSecond\": " +
           std::to_string(static_cast<std::int64_t>(clock) * 1000 * 2 * (bits / 8));
  CUuuid whole{}, instance{};
  if (driver.cuDeviceGetUuid && driver.cuDeviceGetUuid(&whole, device) == CUDA_SUCCESS) {
    out += ", \"uuid\": " + json_text(uuid_text(whole));
    if (driver.cuDeviceGetMigUuid && driver.cuDeviceGetMigUuid(&instance, device) == CUDA_SUCCESS)
      out += std::string(", \"mig\": ") +
             (std::memcmp(&whole, &instance, sizeof whole) != 0 ? "true" : "false");
  }
  return out + "}}";
}

}  // namespace

std::string gpu_uuid_text(const CUuuid& uuid) { return uuid_text(uuid); }

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      out += '?';
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string devices_json(const CudaDriver& driver) {
  int count = 0;
  if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) return "[]";
  std::string out = "[";
  for (int number = 0; number < count; ++number) {
    CUdevice device = 0;
    if (driver.cuDeviceGet(&device, number) != CUDA_SUCCESS) continue;
    if (out.size() > 1) out += ", ";
    out += device_json(driver, number, device);
  }
  return out + "]";
}

RelaxedCaptureMode::RelaxedCaptureMode(const CudaDriver& driver)
    : driver_(driver),
      exchanged_(driver.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS) {}

RelaxedCaptureMode::~RelaxedCaptureMode() {
  if (exchanged_) driver_.cuThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace lanescope::record_cupti
