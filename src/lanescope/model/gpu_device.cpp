#include "lanescope/model/gpu_device.h"

#include <initializer_list>

#include "lanescope/base/json_value.h"

namespace lanescope {
namespace {

GpuDevice::Number number_of(const JsonValue& object,
                            std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const JsonValue* value = object.find(name); value && value->integer) return value->integer;
  return std::nullopt;
}

std::string text_of(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  return value && value->is_string() ? value->text : std::string();
}

GpuDevice device_of(const JsonValue& item) {
  GpuDevice device;
  device.name = text_of(item, "name");
  device.id = number_of(item, {"id"});
  device.memory_bytes = number_of(item, {"totalGlobalMem"});
  device.compute_major = number_of(item, {"computeMajor", "major"});
  device.compute_minor = number_of(item, {"computeMinor", "minor"});
  device.max_threads_per_block = number_of(item, {"maxThreadsPerBlock"});
  device.max_threads_per_sm =
      number_of(item, {"maxThreadsPerMultiprocessor", "maxThreadsPerMultiProcessor"});
  device.warp_size = number_of(item, {"warpSize"});
  device.sm_count = number_of(item, {"numSms", "multiProcessorCount"});
  device.registers_per_block = number_of(item, {"regsPerBlock"});
  device.registers_per_sm = number_of(item, {"regsPerMultiprocessor"});
  device.shared_bytes_per_block = number_of(item, {"sharedMemPerBlock"});
  device.shared_bytes_per_block_optin = number_of(item, {"sharedMemPerBlockOptin"});
  device.shared_bytes_per_sm = number_of(item, {"sharedMemPerMultiprocessor"});
  const JsonValue* more = item.find("lanescope");
  if (!more || !more->is_object()) return device;
  device.max_blocks_per_sm = number_of(*more, {"maxBlocksPerMultiprocessor"});
  device.reserved_shared_bytes_per_block = number_of(*more, {"reservedSharedMemPerBlock"});
  device.clock_khz = number_of(*more, {"clockRateKHz"});
  device.memory_clock_khz = number_of(*more, {"memoryClockRateKHz"});
  device.memory_bus_bits = number_of(*more, {"memoryBusBits"});
  device.l2_bytes = number_of(*more, {"l2CacheBytes"});
  device.memory_bandwidth_bytes_per_s = number_of(*more, {"memoryBandwidthBytesPerSecond"});
  device.uuid = text_of(*more, "uuid");
  if (const JsonValue* mig = more->find("mig"); mig && mig->kind == JsonValue::Kind::kBool)
    device.is_mig = mig->boolean;
  device.pci_bus_id = text_of(*more, "pciBusId");
  return device;
}

}  // namespace

std::vector<GpuDevice> parse_gpu_devices(std::string_view json) {
  std::vector<GpuDevice> devices;
  const auto list = parse_json(json);
  if (!list || !list->is_array()) return devices;
  for (const JsonValue& item : list->items)
    if (item.is_object()) devices.push_back(device_of(item));
  return devices;
}

}  // namespace lanescope
