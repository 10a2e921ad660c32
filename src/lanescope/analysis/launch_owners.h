// Who started what, by device work: launch_of and op_of of launch_links.h, without a column for all slices.
#pragma once
#include <cstdint>
#include <span>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/base/unset_array.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

struct LaunchOwners : LaunchCounts {
  UnsetArray<SliceId> device;  // device work, and waits on the device; in order of the slices
  UnsetArray<SliceId> launch_of, op_of;  // of each of them

  // Where the slice, or the next one after it, is in `device`. O(log n).
  std::size_t place_of(SliceId slice) const;
};

struct LaunchOwnersOptions {
  unsigned threads = 0;                     // 0: usual_threads()
  std::uint32_t slices_at_once = 1u << 16;  // that one thread reads; tests have few
  // External ids are judged and counted even if no device work needs them.
  bool judges_external_ids = false;
  // One row per slice, or none: those of API calls get op_of of launch_links.h, the others stay.
  std::span<SliceId> ops_of_calls{};
};

// The same for any number of threads. O(n log n) time, O(n) if correlation ids rise with time; 24 bytes for each API call
// and 12 for each piece of device work. Any thread.
LaunchOwners compute_launch_owners(const Trace& trace, const LaunchOwnersOptions& options = {});

}  // namespace lanescope::analysis
