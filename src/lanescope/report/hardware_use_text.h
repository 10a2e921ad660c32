// Columns and JSON for what hardware counters measured on kernels and operators.
#pragma once
#include <string>

#include "lanescope/analysis/hardware_use.h"
#include "lanescope/report/json_writer.h"

namespace lanescope::report {

std::string hardware_use_header();
std::string hardware_use_cells(const analysis::HardwareUse& use);  // as wide as the header
// An object "hardware". A number is null if it was not measured, or has too few samples.
void write_hardware_use(JsonWriter& json, const analysis::HardwareUse& use);

}  // namespace lanescope::report
