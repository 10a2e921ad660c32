// `lanescope explain --html`: the whole explanation as one page that needs no other file.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::report {

struct PageOptions {
  std::string trace_name = {};  // shown in the title: escaped, at most 120 code points
  bool has_links = true;        // links to the page's own sections; false inside a frame
};

// docs/formats/explain_page.md. UTF-8, well-formed XML as well as HTML. The page loads nothing: its
// Content-Security-Policy allows one style sheet and one script, both by hash. Every text of the
// trace is escaped and cut. The size is bounded for any trace: at most kMostPictures pictures of
// bounded width, kMostTableRows rows, kMostExactSteps steps in full. O(n log n). Any thread.
std::string explanation_html(const explain::Facts& facts, const explain::Explanation& explanation,
                             const PageOptions& options = {});

inline constexpr std::size_t kMostPictures = 24, kMostPicturesOfFinding = 3, kMostTableRows = 25,
                             kMostExactSteps = 40;

}  // namespace lanescope::report
