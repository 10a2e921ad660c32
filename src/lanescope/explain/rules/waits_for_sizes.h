// The CPU waits for a size that only the GPU knows: that of a boolean mask (aten::index), or of the output of another operator.
#pragma once
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/rules/host_syncs.h"

namespace lanescope::explain::rules {

// Writes the finding's brief, action and what to try next. Needs found.is_about_sizes.
void tell_waits_for_sizes(const Facts& facts, const HostSyncs& found, Finding& finding);

}  // namespace lanescope::explain::rules
