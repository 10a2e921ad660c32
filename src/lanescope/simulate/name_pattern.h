// Finds the events that the name in a change refers to.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/model/trace.h"
#include "lanescope/simulate/changed_graph.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::simulate {

bool contains_text(std::string_view text, std::string_view part);  // ignores upper and lower case

// A name fits if it equals the pattern. If no name of the trace equals it, the kernels with that readable name fit; if there are none,
// the names that contain it.
class NamePattern {
 public:
  NamePattern(const Trace& trace, const std::string& pattern);
  bool fits(const Trace& trace, SliceId slice) const;

 private:
  std::unordered_set<std::uint32_t> equal_, close_;
};

// For each slice: true if its name, or the name of a slice around it, fits.
std::vector<bool> slices_inside(const ChangedGraph& changed, const NamePattern& pattern);
// The same for the events of Change::slices. If there are none: for Change::name.
std::vector<bool> slices_inside(const ChangedGraph& changed);
// True: `fits` is true for the work, its launch or its operator.
bool work_fits(const ChangedGraph& changed, const GpuWork& work, const std::vector<bool>& fits);

}  // namespace lanescope::simulate
