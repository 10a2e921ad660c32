// What kind of time each slice is, and what each name names. Internal to view/.
#pragma once
#include <vector>

#include "lanescope/view/lanes.h"

namespace lanescope::view {

// By slice. O(slices).
std::vector<TimeKind> time_kinds(const explain::Facts& facts);
// By name. O(slices).
std::vector<NameUse> name_uses(const Trace& trace);

}  // namespace lanescope::view
