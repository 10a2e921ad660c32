// `lanescope kernels` as text and as JSON.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lanescope/analysis/hardware_use.h"
#include "lanescope/analysis/kernel_groups.h"
#include "lanescope/explain/facts.h"

namespace lanescope::report {

// `uses`: what was measured of each group (hardware_use.h), or empty. One row per group, at most
// `rows`; names are shortened and control characters replaced. For facts without a main device, one
// line that says so.
std::string kernel_groups_text(const explain::Facts& facts,
                               const std::vector<analysis::KernelGroup>& groups,
                               const std::vector<analysis::HardwareUse>& uses, std::size_t rows);

// docs/formats/json_output.md, command "kernels": all groups. `originals`: of each slice of a part, its id in the whole
// trace; empty: the trace is whole.
std::string kernel_groups_json(const explain::Facts& facts,
                               const std::vector<analysis::KernelGroup>& groups,
                               const std::vector<analysis::HardwareUse>& uses,
                               std::span<const SliceId> originals = {});

}  // namespace lanescope::report
