#include "lanescope/format/perfetto/packet_names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lanescope::format {
namespace {

// https://perfetto.dev/docs/reference/trace-packet-proto
constexpr auto kPacketNames = std::to_array<std::pair<std::uint32_t, const char*>>({
    {1, "ftrace_events"},
    {2, "process_tree"},
    {4, "inode_file_map"},
    {5, "chrome_events"},
    {7, "sys_stats"},
    {9, "process_stats"},
    {37, "profile_packet"},
    {38, "battery"},
    {39, "android_log"},
    {40, "power_rails"},
    {49, "perfetto_metatrace"},
    {52, "gpu_counter_event"},
    {54, "streaming_profile_packet"},
    {57, "graphics_frame_event"},
    {62, "vulkan_memory_event"},
    {63, "gpu_log"},
    {65, "vulkan_api_event"},
    {66, "perf_sample"},
    {68, "smaps_packet"},
    {71, "gpu_mem_total_event"},
    {73, "memory_tracker_snapshot"},
    {74, "streaming_allocation"},
    {75, "streaming_free"},
    {95, "etw_events"},
    {129, "generic_gpu_frequency_event"},
    {133, "zstd_compressed_packets"},
    {135, "stack_sample"},
});
// Fields of every packet, what lanescope reads, and what describes the recording itself.
constexpr auto kSilent = std::to_array<std::uint32_t>(
    {3,  6,  8,  10, 11,  12,  13,  33,  34,  35,  36,  41,  42,  43,  44,  45,  46,  47,
     48, 50, 51, 53, 58,  59,  60,  67,  69,  70,  72,  78,  79,  82,  83,  84,  86,  87,
     89, 90, 98, 99, 103, 107, 109, 113, 123, 124, 125, 126, 127, 128, 134, 138, 900, 200'001});

}  // namespace

std::string unread_packet_name(std::uint32_t field) {
  if (std::find(kSilent.begin(), kSilent.end(), field) != kSilent.end()) return {};
  const auto named = std::find_if(kPacketNames.begin(), kPacketNames.end(),
                                  [&](const auto& entry) { return entry.first == field; });
  return named == kPacketNames.end() ? "field " + std::to_string(field) : named->second;
}

}  // namespace lanescope::format
