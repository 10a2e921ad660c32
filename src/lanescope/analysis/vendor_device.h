// Devices whose rows are not kernels and copies as Kineto writes them: Ascend NPUs (processes "Ascend
// Hardware", "HCCL", "Overlap Analysis") and MTIA (category "mtia_ccp_events"). What they did, by
// name of the row. docs/definitions/wall.md#other-devices.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Nanoseconds, as a wall partition: while anything computes, the time is compute; else
// communication, else copies. In the rest the device waits or has nothing to do.
struct VendorWall {
  std::int64_t wall_ns = 0, compute_ns = 0, exposed_communication_ns = 0, exposed_copy_ns = 0;
  std::int64_t idle_ns() const {
    return wall_ns - compute_ns - exposed_communication_ns - exposed_copy_ns;
  }
};

struct VendorDevice {
  std::string name;                         // "Ascend NPU", "MTIA"
  std::string communication_name;           // "HCCL"; empty: its rows hold no collectives
  IntervalUnion compute;                    // of all its streams
  IntervalUnion compute_or_communication;   // either of them
  IntervalUnion any;                        // or copies
  std::vector<SliceId> works, collectives;  // computing rows and collectives
  std::size_t stream_count = 0;

  VendorWall wall_of(const Window& window) const;
};

// If there are several devices, the one that computes longest; ties: the first. Nothing: the trace has none.
// O(n log n).
std::optional<VendorDevice> find_vendor_device(const Trace& trace);

}  // namespace lanescope::analysis
