// Which events a change means by a name.
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

bool contains_text(std::string_view text, std::string_view part);  // in upper or lower case

// Names that fit: equal names if there are any, else names that contain the pattern.
class NamePattern {
 public:
  NamePattern(const Trace& trace, const std::string& pattern);
  bool fits(const Trace& trace, SliceId slice) const;

 private:
  std::unordered_set<std::uint32_t> equal_, close_;
};

// For each slice: true if it, or a slice around it, has that name.
std::vector<bool> slices_inside(const ChangedGraph& changed, const NamePattern& pattern);
// The same for the events of Change::slices, or for its name where it has none.
std::vector<bool> slices_inside(const ChangedGraph& changed);
// True: the work, its launch or its operator is among those slices.
bool work_fits(const ChangedGraph& changed, const GpuWork& work, const std::vector<bool>& fits);

}  // namespace lanescope::simulate
