#include "lanescope/model/gpu_device.h"

#include <gtest/gtest.h>

#include "lanescope/model/gpu_catalog.h"

namespace lanescope {
namespace {

TEST(GpuDeviceTest, KinetosKeysAndLanescopesOwnAreRead) {
  const auto devices = parse_gpu_devices(R"([{"id": 1, "name": "NVIDIA H200",
      "totalGlobalMem": 150109880320, "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerMultiprocessor": 2048, "numSms": 132, "sharedMemPerBlockOptin": 232448,
      "lanescope": {"maxBlocksPerMultiprocessor": 32, "l2CacheBytes": 62914560, "uuid": "GPU-1", "mig": false,
                    "memoryBandwidthBytesPerSecond": 4800000000000}}, 7, {"id": "x"}])");
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].id, 1);
  EXPECT_EQ(devices[0].name, "NVIDIA H200");
  EXPECT_EQ(devices[0].memory_bytes, 150109880320);
  EXPECT_EQ(devices[0].max_threads_per_sm, 2048);
  EXPECT_EQ(devices[0].sm_count, 132);
  EXPECT_EQ(devices[0].shared_bytes_per_block_optin, 232448);
  EXPECT_EQ(devices[0].max_blocks_per_sm, 32);
  EXPECT_EQ(devices[0].l2_bytes, 62914560);
  EXPECT_EQ(devices[0].memory_bandwidth_bytes_per_s, 4800000000000);
  EXPECT_EQ(devices[0].uuid, "GPU-1");
  EXPECT_EQ(devices[0].is_mig, false);
  EXPECT_FALSE(devices[0].warp_size);
  EXPECT_FALSE(devices[1].id);  // a text is no number
}

TEST(GpuDeviceTest, WhatIsNoListGivesNoDevices) {
  for (const char* json : {"", "[]", "{}", "[1, \"a\", null]", "[{", "7"})
    EXPECT_TRUE(parse_gpu_devices(json).empty()) << json;
}

const GpuSpec* spec(std::string name, std::int64_t major, std::int64_t minor) {
  GpuDevice device;
  device.name = std::move(name);
  device.compute_major = major;
  device.compute_minor = minor;
  return find_gpu_spec(device);
}

TEST(GpuCatalogTest, DriversNamesFindTheirGpu) {
  const struct {
    const char* name;
    std::int64_t major, minor;
    const char* found;
  } cases[] = {
      {"Tesla V100-SXM2-16GB", 7, 0, "NVIDIA V100 SXM2"},
      {"Tesla V100-PCIE-32GB", 7, 0, "NVIDIA V100 PCIe"},
      {"Tesla V100S-PCIE-32GB", 7, 0, "NVIDIA V100S PCIe"},
      {"Tesla T4", 7, 5, "NVIDIA T4"},
      {"NVIDIA A100-SXM4-40GB", 8, 0, "NVIDIA A100 SXM 40GB"},
      {"A100-SXM4-80GB", 8, 0, "NVIDIA A100 SXM 80GB"},
      {"NVIDIA A100 80GB PCIe", 8, 0, "NVIDIA A100 PCIe 80GB"},
      {"NVIDIA A100-PCIE-40GB", 8, 0, "NVIDIA A100 PCIe 40GB"},
      {"NVIDIA GeForce RTX 3090", 8, 6, "NVIDIA GeForce RTX 3090"},
      {"NVIDIA GeForce RTX 4090", 8, 9, "NVIDIA GeForce RTX 4090"},
      {"NVIDIA L4", 8, 9, "NVIDIA L4"},
      {"NVIDIA L40S", 8, 9, "NVIDIA L40S"},
      {"NVIDIA H100 80GB HBM3", 9, 0, "NVIDIA H100 SXM"},
      {"NVIDIA H100 PCIe", 9, 0, "NVIDIA H100 PCIe"},
      {"NVIDIA H200", 9, 0, "NVIDIA H200 SXM"},
      {"NVIDIA H200 NVL", 9, 0, "NVIDIA H200 NVL"},
      {"NVIDIA B200", 10, 0, "NVIDIA B200"},
      {"AMD Instinct MI250X", 9, 0, "AMD Instinct MI250X (one die)"},
      {"AMD Instinct MI300X", 9, 4, "AMD Instinct MI300X"},
  };
  for (const auto& each : cases) {
    const GpuSpec* found = spec(each.name, each.major, each.minor);
    ASSERT_NE(found, nullptr) << each.name;
    EXPECT_EQ(found->name, each.found);
  }
  EXPECT_EQ(std::size(cases), gpu_specs().size());  // some real name finds each entry
}

TEST(GpuCatalogTest, UnknownDevicesHaveNoEntry) {
  EXPECT_EQ(spec("NVIDIA GH200 480GB", 9, 0), nullptr);  // H200 is no whole word of it
  EXPECT_EQ(spec("NVIDIA H200", 10, 0), nullptr);
  EXPECT_EQ(spec("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9, 0), nullptr);
  EXPECT_EQ(spec("NVIDIA L40", 8, 9), nullptr);
  GpuDevice slice;
  slice.name = "NVIDIA H200";
  slice.compute_major = 9;
  slice.compute_minor = 0;
  EXPECT_NE(find_gpu_spec(slice), nullptr);
  slice.is_mig = true;
  EXPECT_EQ(find_gpu_spec(slice), nullptr);
  EXPECT_EQ(spec("", 9, 0), nullptr);
  EXPECT_EQ(find_gpu_spec({}), nullptr);
}

// From the specifications: H200 67 teraFLOPS of FP32, 1,979 of BF16 with sparsity, 4.8 TB/s.
TEST(GpuCatalogTest, RatesAreDense) {
  const GpuSpec* h200 = spec("NVIDIA H200", 9, 0);
  EXPECT_DOUBLE_EQ(*h200->peak.fp32, 67e12);
  EXPECT_DOUBLE_EQ(*h200->peak.bf16, 1979e12 / 2);
  EXPECT_DOUBLE_EQ(h200->memory_bandwidth_bytes_per_s, 4.8e12);
  EXPECT_FALSE(h200->l2_bytes);  // its data sheet does not say
  EXPECT_FALSE(spec("Tesla V100-SXM2-16GB", 7, 0)->peak.bf16);
}

}  // namespace
}  // namespace lanescope
