// A guided tour of a trace, for a reader who has never seen one. Each stop is a place in this trace
// and a few sentences about it; what the trace lacks is left out.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/explain/run_rules.h"
#include "lanescope/view/lanes.h"

namespace lanescope::report {

struct TourStop {
  std::string title, text;
  std::string word;  // the term that it explains: "ProfilerStep", "aten::"; may be empty
  SliceId slice = kNone<SliceId>;
  std::int64_t start_ns = 0, end_ns = 0;  // what to look at, in nanoseconds of the trace
  std::vector<std::uint32_t> lanes;
  std::optional<std::pair<SliceId, SliceId>> arrow;
  std::string rule;  // of the finding that it shows; empty: none
};

// Plain text. O(slices) at most. Any thread.
std::vector<TourStop> make_tour(const view::Lanes& lanes, const explain::Explanation& explanation);

}  // namespace lanescope::report
