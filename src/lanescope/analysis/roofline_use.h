// What hardware counters measured for the operators of a roofline, next to its model.
#pragma once
#include <span>
#include <vector>

#include "lanescope/analysis/hardware_use.h"
#include "lanescope/analysis/roofline_rows.h"

namespace lanescope::analysis {

// One entry for each row, in the same order; a row's work is that of all its calls. Empty: the
// trace has no samples of the device. docs/definitions/hardware.md#use-of-an-operator. O(n log n).
std::vector<HardwareUse> measure_roofline_rows(const Trace& trace, const DeviceTimeline& timeline,
                                               const Roofline& roofline,
                                               std::span<const RooflineRow> rows);

// Measured bytes over the least bytes of the model. 1: as the shapes say; below 1: some came from a
// cache; above 1: some were moved several times. Nothing: one of the two is not known.
std::optional<double> moved_ratio(const RooflineRow& row, const HardwareUse& use);

}  // namespace lanescope::analysis
