// The slices that have a certain name, found without a look at each slice.
#pragma once
#include <string_view>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain {

using NameTest = bool (*)(std::string_view name);

// All slices, of any kind, whose name passes the test; in order of id, so those of a track by start. The test is asked once for each
// different name. The first call for these Facts and their copies sorts all slices by name: O(slices); then O(names + f log f) for f
// slices that were found. Any thread.
std::vector<SliceId> slices_named(const Facts& facts, NameTest test);
std::vector<SliceId> slices_named(const Facts& facts, std::string_view name);
std::vector<SliceId> slices_starting_with(const Facts& facts, std::string_view prefix);

// True: some slice has a name that passes the test. O(names).
bool any_named(const Facts& facts, NameTest test);

}  // namespace lanescope::explain
