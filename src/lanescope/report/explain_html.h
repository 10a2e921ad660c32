// `lanescope explain --html`: the whole explanation as one page that needs nothing else.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::report {

struct PageOptions {
  std::string trace_name = {};  // of the file; shown, escaped, at most 120 code points
  bool has_links = true;        // to the page's own sections; a page inside a frame has none
};

// docs/formats/explain_page.md. No network: the page's own Content-Security-Policy allows one style
// sheet and one script, both by hash. UTF-8, well-formed XML as well as HTML. Every text of the
// trace is escaped and cut; the size is bounded whatever the trace holds: at most kMostPictures
// pictures of bounded width, kMostTableRows rows, kMostExactSteps steps in full. O(n log n). Any
// thread.
std::string explanation_html(const explain::Facts& facts, const explain::Explanation& explanation,
                             const PageOptions& options = {});

inline constexpr std::size_t kMostPictures = 24, kMostPicturesOfFinding = 3, kMostTableRows = 25,
                             kMostExactSteps = 40;

}  // namespace lanescope::report
