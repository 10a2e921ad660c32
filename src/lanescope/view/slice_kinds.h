// What kind of time each slice is, and what kind of event each name belongs to. Internal to view/.
#pragma once
#include <vector>

#include "lanescope/analysis/vendor_rows.h"
#include "lanescope/view/lanes.h"

namespace lanescope::view {

// By slice. O(slices).
std::vector<TimeKind> time_kinds(const explain::Facts& facts,
                                 const std::vector<analysis::VendorRow>& vendor_rows);
// By name. O(slices).
std::vector<NameUse> name_uses(const Trace& trace);

}  // namespace lanescope::view
