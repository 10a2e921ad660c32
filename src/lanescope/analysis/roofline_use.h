// What hardware counters say of the operators of a roofline, next to the model from their shapes.
#pragma once
#include <span>
#include <vector>

#include "lanescope/analysis/hardware_use.h"
#include "lanescope/analysis/roofline_rows.h"

namespace lanescope::analysis {

// One entry a row, in their order; a row's work is that of all its calls together. Empty: the trace
// has no samples of the device. docs/definitions/hardware.md#use-of-an-operator. O(n log n).
std::vector<HardwareUse> measure_roofline_rows(const Trace& trace, const DeviceTimeline& timeline,
                                               const Roofline& roofline,
                                               std::span<const RooflineRow> rows);

// Measured bytes over the least bytes of the model: 1 is what the shapes say, less came from a
// cache, more was moved several times. Nothing: one of them is not known.
std::optional<double> moved_ratio(const RooflineRow& row, const HardwareUse& use);

}  // namespace lanescope::analysis
