// Finds which process launched what, in a file with several processes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// An API call and its correlation id.
struct CorrelatedCall {
  std::int64_t id;
  std::int64_t start_ns;
  SliceId slice;
  SliceId op;  // around it: launch_links.h
  bool operator<(const CorrelatedCall& other) const {
    if (id != other.id) return id < other.id;
    if (start_ns != other.start_ns) return start_ns < other.start_ns;
    return raw(slice) < raw(other.slice);
  }
};

// True: calls of two processes have the same id. `calls` are in order. O(n).
bool ids_repeat_across_processes(const Trace& trace, std::span<const CorrelatedCall> calls);

// Joins each device slice that has a correlation id to a call of its own process, or to none, and
// writes that to `launch_of`: docs/definitions/launches.md#launch-links, "several processes". The
// entries of a device that fits no process stay. `calls` are in order. O(n log n): ids that more
// than 256 calls have are left as they are.
void join_by_process(const Trace& trace, std::span<const CorrelatedCall> calls,
                     std::span<const SliceId> device_slices, std::vector<SliceId>& launch_of);

}  // namespace lanescope::analysis
