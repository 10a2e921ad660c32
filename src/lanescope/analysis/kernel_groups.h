// Groups equal pieces of device work: how many, how long, and how much their times differ.
#pragma once
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "lanescope/analysis/device_work.h"
#include "lanescope/analysis/gaps.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// What makes kernels equal: name, grid, block, and the input shapes of the operator that launched
// them. Texts of the trace by their ids.
struct KernelKey {
  StringId name = kNone<StringId>, grid = kNone<StringId>, block = kNone<StringId>,
           input_dims = kNone<StringId>;
  bool has_shapes() const { return input_dims != kNone<StringId>; }
  bool operator<(const KernelKey& other) const {
    return std::tuple(raw(name), raw(grid), raw(block), raw(input_dims)) <
           std::tuple(raw(other.name), raw(other.grid), raw(other.block), raw(other.input_dims));
  }
};
KernelKey kernel_key(const Trace& trace, const LaunchLinks& links, SliceId kernel);

// Kernels of one name, grid and block, launched by operators with equal input shapes (where the
// trace has them); copies and memsets of one name. docs/definitions/kernels.md#kernel-groups.
struct KernelGroup {
  WorkClass work = WorkClass::kCompute;
  SliceId median_call = kNone<SliceId>;  // for even counts, the shorter of the two in the middle
  SliceId op = kNone<SliceId>;           // that launched it, if any
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;  // durations added up
  std::int64_t busy_ns = 0;   // their union inside the windows
  std::int64_t shortest_ns = 0, median_ns = 0, p95_ns = 0, longest_ns = 0;
  std::int64_t mad_ns = 0;  // median distance from the median
  std::int64_t bytes = 0;   // of copies and memsets, summed
};

// Work of the device that began in one of the windows (disjoint, in order); most busy time first,
// ties: by name. O(n log n). Any thread.
std::vector<KernelGroup> compute_kernel_groups(const Trace& trace, const LaunchLinks& links,
                                               const DeviceTimeline& timeline,
                                               std::span<const Window> windows);

}  // namespace lanescope::analysis
