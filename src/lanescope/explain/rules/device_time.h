// GPU work of the steady steps, and how long the main device worked or was idle.
#pragma once
#include <cstdint>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Kernels, copies and memsets of the main device that began in steady steps, in order of start.
const std::vector<const analysis::DeviceWork*>& steady_work(const Facts& facts);

// Those of them that were launched inside these windows, which are disjoint and in order.
std::vector<const analysis::DeviceWork*> steady_work_launched_in(
    const Facts& facts, const std::vector<analysis::Window>& windows);

// Nanoseconds of the main device's wall in which these ran: a union, so overlaps count once.
std::int64_t union_ns(const std::vector<const analysis::DeviceWork*>& works);

// The part of these (any order, overlaps allowed) in which the main device ran nothing.
std::int64_t device_idle_during(const Facts& facts, std::vector<analysis::Window> windows);

// The parts of windows in which the GPU is in a steady step. The CPU may be ahead of the GPU.
std::vector<analysis::Window> within_steady(const Facts& facts,
                                            const std::vector<analysis::Window>& windows);

// Idle time of the main device between two moments, in steady steps, that comes from launching: not
// launched yet, launch latency, pauses between queued work.
std::int64_t launch_waits_within(const Facts& facts, std::int64_t start_ns, std::int64_t end_ns);

// Length of the union; any order.
std::int64_t total_length(std::vector<analysis::Window> windows);

}  // namespace lanescope::explain::rules
