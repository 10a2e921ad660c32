// The communication kernels of a device, with collective, size and process group from the file.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// A message of less is small: it pays the latency of the links more than their bandwidth. A step with so many small
// ones has too many. DistributedDataParallel closes a bucket with the gradient that reaches its limit, so the buckets
// of a limit of 1 MiB (its own first one) carry between 1 and 2 MiB. docs/rules/small-collectives.md.
inline constexpr std::int64_t kSmallMessageBytes = 2 << 20;
inline constexpr std::uint64_t kManySmallMessages = 20;

// From the kernel's arguments, or from the record_param_comms event around its launch.
struct CollectiveCall {
  DeviceWork work;
  StringId name = kNone<StringId>;            // "allreduce"; kNone: the file does not say
  StringId group = kNone<StringId>;           // process group
  std::optional<std::int64_t> message_bytes;  // the larger of in and out; none: unknown
  std::optional<std::int64_t> sequence;       // of the group
  std::int64_t group_size = 0;                // ranks in the group; 0: the file does not say
};

// nccl-tests, doc/PERFORMANCE.md: bus bandwidth = bytes / time * this. It is the rate at which each link works, whatever the number of
// ranks. 0: not defined for this collective ("allreduce", "_allgather_base", ...), or fewer than two ranks.
double bus_factor(std::string_view collective, std::int64_t ranks);

// In order of start. O(communication). Any thread.
std::vector<CollectiveCall> find_collective_calls(const Trace& trace, const LaunchLinks& links,
                                                  const DeviceTimeline& timeline);

// Bytes of an element by c10's name of the type ("Float", "BFloat16"); none: unknown.
std::optional<std::int64_t> element_bytes(std::string_view dtype);

}  // namespace lanescope::analysis
