// Which ranks' CPUs need longer for a step than the others', whether their GPUs wait for them or not.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

// docs/definitions/ranks.md#cpu-times. Nanoseconds a step; one a compared rank.
struct HostLateness {
  bool known = false;  // all compared ranks have operators, and steps that are marked
  std::vector<std::int64_t> mean_ns;   // more than the others, outside of operators and calls
  std::vector<std::uint64_t> steps;    // steady steps in which it is more than half of `least_ns`
  std::vector<bool> mostly_in_loader;  // more than half of it in a DataLoader
};

// Any thread. O(ranks steps).
HostLateness measure_host_lateness(const Job& job, std::int64_t least_ns);

// The ranks that stand out: places in Job::compared, at most half of them; empty: none does.
std::vector<std::size_t> find_late_hosts(const Job& job, const HostLateness& lateness,
                                         std::int64_t least_ns);

}  // namespace lanescope::ranks
